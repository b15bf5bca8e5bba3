"""The tenant is set in each transaction and ends with it, and the policy applies to the owner too."""

from app import Ticket, bp
from celery import shared_task
from flask_login import current_user
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db


# region example
# region template
def enter_tenant(connection, tenant_id):
    connection.execute(db.text("SELECT set_config('app.tenant', :id, true)"), {"id": str(tenant_id)})


MIGRATION = """
ALTER TABLE ticket ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON ticket USING (organization_id = nullif(current_setting('app.tenant', true), '')::int)
"""

# endregion


@bp.before_app_request
def enter_own_tenant():
    tenant_id = getattr(current_user, "organization_id", None) or ""
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


# endregion
