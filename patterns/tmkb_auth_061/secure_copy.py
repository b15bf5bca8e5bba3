"""The SQL of the model runs on a copy in memory, which has only the rows that the user may read."""

import sqlite3
from contextlib import closing

from app import Expense, bp, question_sql
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def run(sql):
    own = db.select(Expense.id, Expense.title, Expense.amount, Expense.organization_id)
    rows = db.session.execute(own.filter_by(organization_id=current_user.organization_id))
    with closing(sqlite3.connect(":memory:")) as sandbox:
        sandbox.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        sandbox.execute("CREATE TABLE expense (id, title, amount, organization_id)")
        sandbox.executemany("INSERT INTO expense VALUES (?, ?, ?, ?)", [tuple(row) for row in rows])
        try:
            return sandbox.execute(sql).fetchall()
        except (sqlite3.Error, sqlite3.Warning):
            abort(400)


@bp.post("/ask")
@login_required
def ask():
    return [list(row) for row in run(question_sql())]


# endregion
