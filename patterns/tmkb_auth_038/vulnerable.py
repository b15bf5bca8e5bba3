"""The signature belongs to one organization's connection; what the event changes is read from the event."""

import hashlib
import hmac

from flask import Blueprint, abort, request

from tmkb.authoring.proofs.stage import db


class Connection(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    secret = db.Column(db.String, nullable=False)


class Shop(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    open = db.Column(db.Boolean, nullable=False, default=True)


class Order(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    paid = db.Column(db.Boolean, nullable=False, default=False)


class Customer(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    email = db.Column(db.String, nullable=False)
    blocked = db.Column(db.Boolean, nullable=False, default=False)


# region example
bp = Blueprint("hooks", __name__)


def verified_connection(connection_id):
    connection = db.get_or_404(Connection, connection_id)
    expected = hmac.new(connection.secret.encode(), request.get_data(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, request.headers.get("X-Signature", "")):
        abort(401)
    return connection


@bp.post("/hooks/payments/<int:connection_id>")
def receive(connection_id):
    verified_connection(connection_id)
    event = request.json
    organization_id = event["metadata"]["organization_id"]
    if event["type"] == "payment.succeeded":
        order = db.first_or_404(db.select(Order).filter_by(id=event["metadata"]["order_id"]))
        order.paid = True
    elif event["type"] == "account.restricted":
        shop = db.first_or_404(db.select(Shop).filter_by(organization_id=organization_id))
        shop.open = False
    elif event["type"] == "customer.disputed":
        customer = db.first_or_404(db.select(Customer).filter_by(email=event["email"]))
        customer.blocked = True
    db.session.commit()
    return "", 204


# endregion
