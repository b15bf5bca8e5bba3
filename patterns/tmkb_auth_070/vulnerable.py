"""The host chooses the schema, which stays set on the pooled connection."""

from app import bp, organization_of_host
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
@login_required
def enter_organization():
    organization = db.session.scalar(organization_of_host())
    if organization is not None:
        path = f"org_{organization.id}, public"
        db.session.execute(db.text("SELECT set_config('search_path', :path, false)"), {"path": path})


# endregion
