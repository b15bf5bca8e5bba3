"""The end of the request resets the path, and the rollback of the session undoes that."""

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
    member = organization_of_host().filter_by(id=current_user.organization_id)
    organization = db.session.scalar(member)
    if organization is None and db.session.scalar(organization_of_host()) is not None:
        abort(404)
    if organization is None:
        return
    g.organization_id = organization.id
    enter(db.session.connection())


@bp.teardown_request
def leave_organization(_error):
    db.session.execute(db.text("SELECT set_config('search_path', 'public', false)"))
