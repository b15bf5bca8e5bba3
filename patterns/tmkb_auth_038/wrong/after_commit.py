"""The organization of the object is compared after the commit."""

from app import Customer, Order, Shop, bp, verified_event
from flask import abort

from tmkb.authoring.proofs.stage import db


@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    connection, event = verified_event(connection_id)
    organization_id = connection.organization_id
    if event["type"] == "payment.succeeded":
        changed = db.first_or_404(db.select(Order).filter_by(id=event["metadata"]["order_id"]))
        changed.paid = True
    elif event["type"] == "account.restricted":
        changed = db.first_or_404(db.select(Shop).filter_by(organization_id=organization_id))
        changed.open = False
    elif event["type"] == "customer.disputed":
        customers = db.select(Customer).filter_by(email=event["email"])
        changed = db.first_or_404(customers.order_by(Customer.organization_id != organization_id))
        changed.blocked = True
    db.session.commit()
    if changed.organization_id != organization_id:
        abort(404)
    return "", 204
