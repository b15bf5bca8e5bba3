"""The organization in the metadata must be the connection's, but objects are looked up among all."""

from app import Customer, Order, Shop, bp, verified_event
from flask import abort

from tmkb.authoring.proofs.stage import db


@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    connection, event = verified_event(connection_id)
    organization_id = connection.organization_id
    if event["metadata"].get("organization_id", organization_id) != organization_id:
        abort(404)
    if event["type"] == "payment.succeeded":
        db.first_or_404(db.select(Order).filter_by(id=event["metadata"]["order_id"])).paid = True
    elif event["type"] == "account.restricted":
        db.first_or_404(db.select(Shop).filter_by(organization_id=organization_id)).open = False
    elif event["type"] == "customer.disputed":
        db.first_or_404(db.select(Customer).filter_by(email=event["email"])).blocked = True
    db.session.commit()
    return "", 204
