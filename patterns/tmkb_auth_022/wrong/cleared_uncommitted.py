"""The request clears the setting at its end, but the rollback of the pool restores it."""

from app import Ticket, bp
from celery import shared_task
from flask_login import current_user

from tmkb.authoring.proofs.stage import db


def enter_tenant(connection, tenant_id):
    connection.execute(db.text("SELECT set_config('app.tenant', :id, false)"), {"id": str(tenant_id)})


MIGRATION = """
ALTER TABLE ticket ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON ticket USING (organization_id = nullif(current_setting('app.tenant', true), '')::int)
"""


@bp.before_app_request
def enter_own_tenant():
    if tenant_id := getattr(current_user, "organization_id", None):
        enter_tenant(db.session.connection(), tenant_id)


@bp.teardown_app_request
def leave_tenant(_error):
    db.session.rollback()
    enter_tenant(db.session.connection(), "")


@shared_task(name="nightly_digest")
def nightly_digest(tenant_id):
    with db.engines["owner"].begin() as connection:
        enter_tenant(connection, tenant_id)
        return list(connection.scalars(db.select(Ticket.subject)))
