"""An order is attached to an account with the guest's key, which ends with that, or by a verified e-mail address."""

from app import Order, bp, digest, profile
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
@bp.post("/orders/<int:order_id>/claim")
@login_required
def claim(order_id):
    key = digest(request.get_json().get("key"))
    guest = db.update(Order).filter_by(id=order_id, key_hash=key)
    if db.session.execute(guest.values(user_id=current_user.id, key_hash=None)).rowcount != 1:
        abort(404)
    db.session.commit()
    return "", 204


# endregion


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


# endregion
