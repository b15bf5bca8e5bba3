"""Only statements that begin with SELECT run."""

from app import bp, question_sql
from flask import abort
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    if not sql.lower().startswith("select"):
        abort(400)
    with db.engine.begin() as conn:
        return conn.exec_driver_sql(sql).all()


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
