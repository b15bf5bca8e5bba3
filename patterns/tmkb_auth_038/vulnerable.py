"""The signature belongs to the connection of one organization, but the event names what it changes."""

from app import Customer, Order, Shop, bp, verified_event

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    _, event = verified_event(connection_id)
    organization_id = event["metadata"]["organization_id"]
    if event["type"] == "payment.succeeded":
        db.first_or_404(db.select(Order).filter_by(id=event["metadata"]["order_id"])).paid = True
    elif event["type"] == "account.restricted":
        db.first_or_404(db.select(Shop).filter_by(organization_id=organization_id)).open = False
    elif event["type"] == "customer.disputed":
        db.first_or_404(db.select(Customer).filter_by(email=event["email"])).blocked = True
    db.session.commit()
    return "", 204


# endregion
