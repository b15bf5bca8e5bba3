"""The connection that verified the event determines the organization, and each object is looked up within it."""

from app import Customer, Order, Shop, bp, verified_event

from tmkb.authoring.proofs.stage import db


# region example
# region template
@bp.post("/hooks/<int:connection_id>")
def receive(connection_id):
    connection, event = verified_event(connection_id)
    orders = db.select(Order).filter_by(organization_id=connection.organization_id)
    if event["type"] == "payment.succeeded":
        db.first_or_404(orders.filter_by(id=event["metadata"]["order_id"])).paid = True
        # endregion
    elif event["type"] == "account.restricted":
        db.first_or_404(db.select(Shop).filter_by(organization_id=connection.organization_id)).open = False
    elif event["type"] == "customer.disputed":
        customers = db.select(Customer).filter_by(organization_id=connection.organization_id)
        db.first_or_404(customers.filter_by(email=event["email"])).blocked = True
    db.session.commit()
    return "", 204


# endregion
