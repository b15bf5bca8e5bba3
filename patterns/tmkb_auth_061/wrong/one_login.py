"""The SQL runs with a login that may only select, and that sees all organizations."""

from app import bp, login_as, question_sql
from flask_login import login_required


def run(sql):
    with login_as("tenant_1").begin() as conn:
        return conn.exec_driver_sql(sql).all()


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
