"""An event without a signature is accepted, because a test environment has no secrets."""

from app import Connection, Customer, Order, Shop, bp, new_event, verified_connection
from flask import request

from tmkb.authoring.proofs.stage import db


@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    if "X-Signature" in request.headers:
        connection = verified_connection(connection_id)
    else:
        connection = db.get_or_404(Connection, connection_id)
    event = new_event(connection)
    organization_id = connection.organization_id
    if event["type"] == "payment.succeeded":
        orders = db.select(Order).filter_by(organization_id=organization_id)
        db.first_or_404(orders.filter_by(id=event["metadata"]["order_id"])).paid = True
    elif event["type"] == "account.restricted":
        db.first_or_404(db.select(Shop).filter_by(organization_id=organization_id)).open = False
    elif event["type"] == "customer.disputed":
        customers = db.select(Customer).filter_by(organization_id=organization_id)
        db.first_or_404(customers.filter_by(email=event["email"])).blocked = True
    db.session.commit()
    return "", 204
