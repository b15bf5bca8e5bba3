"""A verified signature is taken to mean that the event is new."""

from app import Customer, Order, Shop, bp, verified_connection
from flask import request

from tmkb.authoring.proofs.stage import db


@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    connection = verified_connection(connection_id)
    event = request.get_json()
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
