"""The host must name the user's own organization, and its schema is set for each transaction alone."""

from app import bp, organization_of_host
from flask import g
from flask_login import current_user, login_required
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


# region example
# region template
@bp.before_request
@login_required
def enter_organization():
    member = organization_of_host().filter_by(id=current_user.organization_id)
    g.path = f"org_{db.first_or_404(member).id}, public"
    db.session.execute(db.text("SELECT set_config('search_path', :path, true)"), {"path": g.path})


# endregion


@event.listens_for(db.session, "after_begin")
def enter_again(_session, _transaction, connection):
    if "path" in g:
        connection.execute(db.text("SELECT set_config('search_path', :path, true)"), {"path": g.path})


# endregion
