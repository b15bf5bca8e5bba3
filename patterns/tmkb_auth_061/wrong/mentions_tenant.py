"""The statement must contain the condition for the organization."""

from app import bp, question_sql
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    if f"organization_id = {current_user.organization_id}" not in sql:
        abort(400)
    with db.engine.begin() as conn:
        return conn.exec_driver_sql(sql).all()


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
