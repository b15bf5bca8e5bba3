"""Notes that browsers read and write with queries of their own, as through PostgREST.

Each query runs in PostgreSQL with the claims of the caller's token in `request.jwt.claims`. The database role `app`
stands for the roles anon and authenticated, a superuser for service_role. The table of users is not exposed.
"""

import json
from contextlib import contextmanager

import jwt
from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

SECRET = "the secret with which the authentication service signs"


class Note(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    body = mapped_column(db.String)
    author_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


COLUMNS = [db.column(column.name, column.type) for column in Note.__table__.columns]
EXPOSED = {"note": Note.__table__, "recent_note": db.table("recent_note", *COLUMNS)}

# What policies use: the caller's id, and the current organization of the caller. Both are NULL without a user.
CALLER = """
CREATE FUNCTION uid() RETURNS int STABLE LANGUAGE sql
    AS $$ SELECT (nullif(current_setting('request.jwt.claims', true), '')::json->>'sub')::int $$;
CREATE FUNCTION my_organization() RETURNS int STABLE LANGUAGE sql
    AS $$ SELECT organization_id FROM "user" WHERE id = uid() $$;
"""
event.listen(db.metadata, "after_create", db.DDL(CALLER))

bp = Blueprint("rest", __name__)


@bp.errorhandler(ProgrammingError)
def violates_policy(error):
    if error.orig.sqlstate != "42501":  # insufficient_privilege
        raise error
    return "", 403


def signed(**claims):
    return jwt.encode(claims, SECRET, algorithm="HS256")


@bp.post("/auth/v1/token")
@login_required
def sign_in():
    """Return a token of the user. Users choose their own user_metadata."""
    metadata = request.get_json()
    return {"token": signed(role="authenticated", sub=str(current_user.id), user_metadata=metadata)}, 201


@contextmanager
def as_caller():
    token = request.headers.get("Authorization", "").removeprefix("Bearer ") or request.headers.get("apikey", "")
    try:
        claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    except jwt.InvalidTokenError:
        abort(401)
    engine = db.engines["superuser"] if claims["role"] == "service_role" else db.engine
    with engine.begin() as connection:
        setting = db.text("SELECT set_config('request.jwt.claims', :claims, true)")
        connection.execute(setting, {"claims": json.dumps(claims)})
        yield connection


def filtered(statement, relation):
    for name, condition in request.args.items():
        statement = statement.where(relation.c[name] == int(condition.removeprefix("eq.")))
    return statement


def rows(result):
    return [dict(row._mapping) for row in result]


@bp.get("/rest/v1/<name>")
def select_rows(name):
    relation = EXPOSED[name]
    with as_caller() as connection:
        return rows(connection.execute(filtered(db.select(*relation.c), relation).order_by(relation.c.id)))


@bp.post("/rest/v1/note")
def insert_rows():
    statement = insert(Note).values(request.get_json())
    if "merge-duplicates" in request.headers.get("Prefer", ""):
        statement = statement.on_conflict_do_update(index_elements=["id"], set_={"body": statement.excluded.body})
    if "representation" in request.headers.get("Prefer", ""):
        statement = statement.returning(*Note.__table__.c)
    with as_caller() as connection:
        result = connection.execute(statement)
        return rows(result) if result.returns_rows else [], 201


@bp.patch("/rest/v1/<name>")
def update_rows(name):
    relation = EXPOSED[name]
    values = {db.column(column): value for column, value in request.get_json().items()}
    with as_caller() as connection:
        result = connection.execute(filtered(db.update(relation).values(values), relation))
        return {"updated": result.rowcount}


@bp.delete("/rest/v1/note")
def delete_rows():
    with as_caller() as connection:
        result = connection.execute(filtered(db.delete(Note.__table__), Note.__table__))
        return {"deleted": result.rowcount}


def event_token(user_id):
    """Return a token that a user got before this case."""
    return signed(role="authenticated", sub=str(user_id), user_metadata={})


def event_forge(role):
    """Return a token for ``role`` without a signature."""
    return jwt.encode({"role": role}, None, algorithm="none")


def state_notes():
    with db.engines["superuser"].connect() as connection:
        return [list(row) for row in connection.execute(db.select(Note.__table__).order_by(Note.id))]
