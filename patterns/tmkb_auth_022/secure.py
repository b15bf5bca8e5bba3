"""Row policies read the tenant from a setting that ends with the transaction."""

import sqlite3

from flask import Blueprint, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Reading(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, nullable=False)


class Connection(sqlite3.Connection):
    """Stands for a PostgreSQL session: a setting lasts as long as the transaction, or as the session once committed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.session, self.uncommitted, self.local = {}, {}, {}
        self.create_function("set_config", 3, self.set_config)
        self.create_function("current_setting", 2, self.current_setting)

    def set_config(self, name, value, is_local):
        (self.local if is_local else self.uncommitted)[name] = value
        return value

    def current_setting(self, name, missing_ok):
        return {**self.session, **self.uncommitted, **self.local}.get(name)

    def commit(self):
        super().commit()
        self.session.update(self.uncommitted)
        self.uncommitted, self.local = {}, {}

    def rollback(self):
        super().rollback()
        self.uncommitted, self.local = {}, {}


def upgrade():
    """A view stands for the policy; it leaves the owner out unless that is forced to obey as well."""
    exempt = "'owner'" if "ALTER TABLE ticket FORCE ROW LEVEL SECURITY" not in MIGRATION else "NULL"
    (policy,) = [line.partition(" USING ")[2] for line in MIGRATION if line.startswith("CREATE POLICY")]
    db.session.execute(db.text("CREATE TABLE ticket_row (subject TEXT, tenant_id TEXT)"))
    condition = f"current_setting('role', true) = {exempt} OR {policy}"
    db.session.execute(db.text(f"CREATE VIEW ticket AS SELECT * FROM ticket_row WHERE {condition}"))
    db.session.commit()


# region example
bp = Blueprint("tickets", __name__)

# region template
MIGRATION = [
    "ALTER TABLE ticket ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ticket FORCE ROW LEVEL SECURITY",
    "CREATE POLICY own ON ticket USING (tenant_id = current_setting('app.tenant', true))",
]


def enter_tenant(tenant_id):
    db.session.execute(db.text("SELECT set_config('app.tenant', :id, true)"), {"id": str(tenant_id)})
    # endregion


@bp.before_app_request
def enter_own_tenant():
    if tenant_id := getattr(current_user, "organization_id", None):
        enter_tenant(tenant_id)


@bp.get("/tickets")
@login_required
def list_tickets():
    return jsonify(list(db.session.scalars(db.text("SELECT subject FROM ticket"))))


@bp.post("/tickets/read")
@login_required
def mark_read():
    db.session.add(Reading(user_id=current_user.id))
    db.session.commit()
    return "", 204


def nightly_digest(tenant_id):
    db.session.execute(db.text("SELECT set_config('role', 'owner', true)"))
    enter_tenant(tenant_id)
    return list(db.session.scalars(db.text("SELECT subject FROM ticket")))


# endregion
