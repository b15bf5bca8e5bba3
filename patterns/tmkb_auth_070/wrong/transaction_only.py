"""The path ends with the transaction, and anyone may name any host."""

from app import bp, organization_of_host
from flask import g
from flask_login import login_required
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


def enter(connection):
    path = f"org_{g.organization_id}, public"
    connection.execute(db.text("SELECT set_config('search_path', :path, true)"), {"path": path})


@bp.before_request
@login_required
def enter_organization():
    organization = db.session.scalar(organization_of_host())
    if organization is not None:
        g.organization_id = organization.id
        enter(db.session.connection())


@event.listens_for(db.session, "after_begin")
def enter_again(_session, _transaction, connection):
    if "organization_id" in g:
        enter(connection)
