"""An order can be claimed by its number if its e-mail address is that of the profile."""

from app import Order, bp, profile
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/orders/<int:order_id>/claim")
@login_required
def claim(order_id):
    guest = db.update(Order).filter_by(id=order_id, email=profile().email, user_id=None)
    if db.session.execute(guest.values(user_id=current_user.id, key_hash=None)).rowcount != 1:
        abort(404)
    db.session.commit()
    return "", 204


@bp.post("/orders/claim")
@login_required
def claim_by_email():
    email = profile().verified_email
    if email is None:
        abort(403)
    guest = db.update(Order).filter_by(email=email, user_id=None)
    db.session.execute(guest.values(user_id=current_user.id, key_hash=None))
    db.session.commit()
    return "", 204
