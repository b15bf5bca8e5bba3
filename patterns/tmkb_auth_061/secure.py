"""The SQL of the model runs with a login of the user's organization, which row-level security limits."""

from app import bp, login_as, question_sql
from flask_login import current_user, login_required


# region example
# region template
def run(sql):
    with login_as(f"tenant_{current_user.organization_id}").begin() as conn:
        return conn.exec_driver_sql(sql).all()


MIGRATION = """
ALTER TABLE expense ENABLE ROW LEVEL SECURITY;
CREATE POLICY app ON expense TO app USING (true);
CREATE POLICY own ON expense FOR SELECT USING (session_user = 'tenant_' || organization_id)
"""

# endregion


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]


# endregion
