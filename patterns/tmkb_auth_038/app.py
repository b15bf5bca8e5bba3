"""Shops that connect accounts at a payment provider, whose signed events a version of the code receives."""

import hashlib
import hmac
import json

from flask import Blueprint, abort, make_response, request
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Connection(db.Model):
    """An account at the provider, with the secret that signs its events."""

    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    secret = mapped_column(db.String)


class Delivery(db.Model):
    """An event that was processed. A replayed one violates the primary key."""

    connection_id = mapped_column(db.Integer, primary_key=True)
    event_id = mapped_column(db.String, primary_key=True)


class Shop(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer)
    open = mapped_column(db.Boolean, default=True)


class Order(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer)
    paid = mapped_column(db.Boolean, default=False)


class Customer(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer)
    email = mapped_column(db.String)
    blocked = mapped_column(db.Boolean, default=False)


bp = Blueprint("hooks", __name__)


def signature(connection, body):
    return hmac.new(connection.secret.encode(), body, hashlib.sha256).hexdigest()


def verified_connection(connection_id):
    """Return the connection whose secret signed the request."""
    connection = db.get_or_404(Connection, connection_id)
    sent = request.headers.get("X-Signature", "")
    if not hmac.compare_digest(signature(connection, request.get_data()).encode(), sent.encode()):
        abort(401)
    return connection


def new_event(connection):
    """Return the event of the request. An event that was processed before is answered without a change."""
    event = request.get_json()
    if not isinstance(event.get("id"), str) or not event["id"]:
        abort(400)  # or the IntegrityError for NULL would pass for a replay
    db.session.add(Delivery(connection_id=connection.id, event_id=event["id"]))
    try:
        db.session.flush()
    except IntegrityError:
        abort(make_response("", 204))
    return event


def verified_event(connection_id):
    connection = verified_connection(connection_id)
    return connection, new_event(connection)


def event_shops():
    """Acme has order 10 and Globex order 20. Carol is a customer of both, Dora of Globex only."""
    for organization_id in (2, 1):
        db.session.add(Connection(id=organization_id, organization_id=organization_id, secret=f"s{organization_id}"))
        db.session.add(Shop(organization_id=organization_id))
        db.session.add(Order(id=10 * organization_id, organization_id=organization_id))
        db.session.add(Customer(organization_id=organization_id, email="carol@customers.example"))
        db.session.flush()
    db.session.add(Customer(organization_id=2, email="dora@customers.example"))


def event_sign(connection, content):
    """Return the body of an event and its signature, as the provider sends them for this connection."""
    body = content if isinstance(content, str) else json.dumps(content)
    return {"body": body, "signature": signature(db.session.get(Connection, connection), body.encode())}


def event_set_shop(organization_id, open):  # the name of the column
    db.session.scalars(db.select(Shop).filter_by(organization_id=organization_id)).one().open = open


def event_block_customer(organization_id, email):
    customers = db.select(Customer).filter_by(organization_id=organization_id, email=email)
    db.session.scalars(customers).one().blocked = True


def event_move_order(order_id, organization_id):
    db.session.get(Order, order_id).organization_id = organization_id


def event_disconnect(connection):
    db.session.delete(db.session.get(Connection, connection))


def state_data():
    return {
        "closed": sorted(db.session.scalars(db.select(Shop.organization_id).filter_by(open=False))),
        "paid": sorted(db.session.scalars(db.select(Order.id).filter_by(paid=True))),
        "blocked": sorted(db.session.scalars(db.select(Customer.id).filter_by(blocked=True))),
    }
