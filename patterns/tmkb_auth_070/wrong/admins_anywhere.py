"""Administrators may enter every organization, and every organization has administrators."""

from app import bp, organization_of_host
from flask import g
from flask_login import current_user, login_required
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


def enter(connection):
    path = f"org_{g.organization_id}, public"
    connection.execute(db.text("SELECT set_config('search_path', :path, true)"), {"path": path})


@bp.before_request
@login_required
def enter_organization():
    organizations = organization_of_host()
    if current_user.role != "admin":
        organizations = organizations.filter_by(id=current_user.organization_id)
    g.organization_id = db.first_or_404(organizations).id
    enter(db.session.connection())


@event.listens_for(db.session, "after_begin")
def enter_again(_session, _transaction, connection):
    if "organization_id" in g:
        enter(connection)
