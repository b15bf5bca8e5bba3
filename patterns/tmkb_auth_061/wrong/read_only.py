"""The statement runs in a read-only transaction."""

from app import bp, question_sql
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def run(sql):
    with db.engine.begin() as conn:
        conn.exec_driver_sql("SET TRANSACTION READ ONLY")
        return conn.exec_driver_sql(sql).all()


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]
