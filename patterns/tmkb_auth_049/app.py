"""Customers of organizations. A version of the code lists them with filters, sorting and cursors from the client."""

import base64
import json

from flask import Blueprint, abort
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Customer(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    city = mapped_column(db.String, nullable=False)
    discount = mapped_column(db.String, nullable=False)
    reset_token = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("customers", __name__)


def write_cursor(**state):
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode()


def read_cursor(text):
    """Return the state in a cursor, that of the first page for none."""
    if text is None:
        return {"offset": 0}
    try:
        state = json.loads(base64.urlsafe_b64decode(text))
        return {**state, "offset": min(abs(int(state["offset"])), 10_000)}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        abort(400)


def condition(column, operator, value):
    return column.startswith(value, autoescape=True) if operator == "startswith" else column == value


def event_nested_cursor():
    """Return a cursor that nests more lists than the JSON parser can read."""
    return base64.urlsafe_b64encode(b"[" * 5000).decode()


def event_customer(**values):
    db.session.add(Customer(**values))
