"""Whoever names an order, or its e-mail address, gets it into the account."""

from app import Order, bp, profile
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/orders/<int:order_id>/claim")
@login_required
def claim(order_id):
    order = db.get_or_404(Order, order_id)
    order.user_id = current_user.id
    db.session.commit()
    return "", 204


@bp.post("/orders/claim")
@login_required
def claim_by_email():
    guest = db.update(Order).filter_by(email=profile().email, user_id=None)
    db.session.execute(guest.values(user_id=current_user.id))
    db.session.commit()
    return "", 204


# endregion
