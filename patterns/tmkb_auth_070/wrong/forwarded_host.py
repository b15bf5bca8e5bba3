"""The membership is checked for the host, and a header of the proxy chooses the schema."""

from app import bp, organization_of_host
from flask import g, request
from flask_login import current_user, login_required
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


def enter(connection):
    path = f"org_{g.organization_id}, public"
    connection.execute(db.text("SELECT set_config('search_path', :path, true)"), {"path": path})


@bp.before_request
@login_required
def enter_organization():
    member = organization_of_host().filter_by(id=current_user.organization_id)
    g.organization_id = db.first_or_404(member).id
    if "X-Tenant" in request.headers:
        g.organization_id = int(request.headers["X-Tenant"])
    enter(db.session.connection())


@event.listens_for(db.session, "after_begin")
def enter_again(_session, _transaction, connection):
    if "organization_id" in g:
        enter(connection)
