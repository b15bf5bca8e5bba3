"""The SQL of the model runs with the login of the application, which reads and changes everything."""

from app import bp, question_sql
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
def run(sql):
    with db.engine.begin() as conn:
        return conn.exec_driver_sql(sql).all()


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]


# endregion
