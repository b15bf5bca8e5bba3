"""The membership is checked for hosts of organizations, and the path stays on the connection."""

from app import bp, organization_of_host
from flask import abort, g
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def enter(connection):
    path = f"org_{g.organization_id}, public"
    connection.execute(db.text("SELECT set_config('search_path', :path, false)"), {"path": path})


@bp.before_request
@login_required
def enter_organization():
    organization = db.session.scalar(organization_of_host())
    if organization is not None:
        if organization.id != current_user.organization_id:
            abort(404)
        g.organization_id = organization.id
        enter(db.session.connection())
