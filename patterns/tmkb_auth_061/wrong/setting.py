"""The policy reads a setting, which the SQL of the model can change."""

from app import bp, login_as, question_sql
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    with login_as("tenant_1").begin() as conn:
        tenant = str(current_user.organization_id)
        conn.execute(db.text("SELECT set_config('app.tenant', :tenant, true)"), {"tenant": tenant})
        return conn.exec_driver_sql(sql).all()


MIGRATION = """
ALTER TABLE expense ENABLE ROW LEVEL SECURITY;
CREATE POLICY app ON expense TO app USING (true);
CREATE POLICY own ON expense FOR SELECT TO PUBLIC USING (
  session_user <> 'app' AND organization_id = nullif(current_setting('app.tenant', true), '')::int)
"""


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
