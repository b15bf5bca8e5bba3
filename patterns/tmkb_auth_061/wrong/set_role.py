"""The connection of the application changes its role, and the SQL of the model can change it back."""

from app import bp, question_sql
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    with db.engine.begin() as conn:
        conn.exec_driver_sql(f"SET LOCAL ROLE tenant_{current_user.organization_id}")
        return conn.exec_driver_sql(sql).all()


MIGRATION = """
ALTER TABLE expense ENABLE ROW LEVEL SECURITY;
CREATE POLICY app ON expense USING (current_user = 'app');
CREATE POLICY own ON expense FOR SELECT USING (current_user = 'tenant_' || organization_id)
"""


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
