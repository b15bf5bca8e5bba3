"""Rows of other organizations are removed from the result."""

from app import bp, question_sql
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    with db.engine.connect() as conn:
        rows = conn.exec_driver_sql(sql).mappings().all()
    tenant = current_user.organization_id
    return [row.values() for row in rows if row.get("organization_id", tenant) == tenant]


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
