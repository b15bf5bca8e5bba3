"""The client says in a header for which tenant it works."""

from app import Ticket, bp
from celery import shared_task
from flask import request
from flask_login import current_user
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


def enter_tenant(connection, tenant_id):
    connection.execute(db.text("SELECT set_config('app.tenant', :id, true)"), {"id": str(tenant_id)})


MIGRATION = """
ALTER TABLE ticket ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON ticket USING (organization_id = nullif(current_setting('app.tenant', true), '')::int)
"""


@bp.before_app_request
def enter_own_tenant():
    tenant_id = request.headers.get("X-Tenant") or getattr(current_user, "organization_id", None) or ""
    db.session.info["tenant_id"] = tenant_id
    enter_tenant(db.session.connection(), tenant_id)


@event.listens_for(db.session, "after_begin")
def enter_again(session, _transaction, connection):
    if "tenant_id" in session.info:
        enter_tenant(connection, session.info["tenant_id"])


@shared_task(name="nightly_digest")
def nightly_digest(tenant_id):
    with db.engines["owner"].begin() as connection:
        enter_tenant(connection, tenant_id)
        return list(connection.scalars(db.select(Ticket.subject)))
