"""Two rows in the table of approvals release a payment, whoever and whatever they approved."""

from app import LIMIT, Approval, approvers, bp, find_payment
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/payments/<int:payment_id>/approve")
@login_required
def approve(payment_id):
    payment = find_payment(payment_id)
    if current_user.role != "admin" or payment.author_id == current_user.id:
        abort(403)
    db.session.add(Approval(payment_id=payment.id, approver_id=current_user.id, revision=payment.revision))
    db.session.commit()
    return "", 204


@bp.post("/payments/<int:payment_id>/pay")
@login_required
def pay(payment_id):
    payment = find_payment(payment_id)
    needed = 2 if payment.amount >= LIMIT else 1
    if len(approvers(payment.id)) < needed:
        abort(403)
    payment.paid = True
    db.session.commit()
    return "", 204


# endregion
