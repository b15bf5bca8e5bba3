"""Expenses in PostgreSQL and an assistant that answers questions with SQL. A version of the code runs the SQL.

The language model is a stub: it returns the SQL that a question contains, as a model does that follows instructions,
and otherwise a query for the expenses of the organization. Each organization has a login, `tenant_1` for number 1.
These logins may only select expenses. The login of the application, `app`, may do everything and change to their roles.
"""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Expense(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class ApiToken(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    secret = mapped_column(db.String, nullable=False)


bp = Blueprint("assistant", __name__)


def translate(question, organization_id):
    _, _, sql = question.partition("SQL: ")
    return sql or f"SELECT title, amount FROM expense WHERE organization_id = {organization_id} ORDER BY id"


def login_as(role):
    """Return an engine that connects to the database of the application with another login."""
    database = db.session.scalar(db.text("SELECT current_database()"))
    return create_engine(db.engine.url.set(username=role, database=database), poolclass=NullPool)


@bp.errorhandler(DBAPIError)
@bp.errorhandler(ResourceClosedError)
def failed(_error):
    return {"error": "The query failed."}, 400


@bp.post("/expenses")
@login_required
def add_expense():
    body = request.get_json()
    db.session.add(Expense(title=body["title"], amount=body["amount"], organization_id=current_user.organization_id))
    db.session.commit()
    return "", 204


def question_sql():
    """Return the SQL of the model for the question in the request."""
    if current_user.organization_id is None:
        abort(403)
    return translate(request.get_json()["question"], current_user.organization_id)


ROLE = "DO $$ BEGIN CREATE ROLE {}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"


def event_provision():
    """Create the logins of the organizations, and a token of the application."""
    with db.engines["superuser"].begin() as connection:
        for role in ("analyst", "tenant_1 LOGIN IN ROLE analyst ROLE app", "tenant_2 LOGIN IN ROLE analyst ROLE app"):
            connection.exec_driver_sql(ROLE.format(role))
        connection.exec_driver_sql("GRANT SELECT ON expense TO analyst")
        connection.execute(db.insert(ApiToken).values(secret="token 5588"))


def state_expenses():
    with db.engines["superuser"].connect() as connection:
        rows = connection.execute(db.select(Expense.title, Expense.amount).order_by(Expense.id))
        return [list(row) for row in rows]
