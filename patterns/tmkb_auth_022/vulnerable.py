"""The setting that policies read outlives the transaction, and the policies do not apply to the owner."""

from app import Ticket, bp
from celery import shared_task
from flask_login import current_user

from tmkb.authoring.proofs.stage import db


# region example
def enter_tenant(connection, tenant_id):
    connection.execute(db.text("SELECT set_config('app.tenant', :id, false)"), {"id": str(tenant_id)})


MIGRATION = """
ALTER TABLE ticket ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON ticket USING (organization_id = nullif(current_setting('app.tenant', true), '')::int)
"""


@bp.before_app_request
def enter_own_tenant():
    if tenant_id := getattr(current_user, "organization_id", None):
        enter_tenant(db.session.connection(), tenant_id)


@shared_task(name="nightly_digest")
def nightly_digest(tenant_id):
    with db.engines["owner"].begin() as connection:
        enter_tenant(connection, tenant_id)
        return list(connection.scalars(db.select(Ticket.subject)))


# endregion
