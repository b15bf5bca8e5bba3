"""Approvals of all revisions count."""

from app import LIMIT, Approval, Payment, approvers, bp, find_payment, is_admin, person_of, total, writers
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def may_approve(user, payment):
    person, authors = person_of(user), writers(payment)
    return is_admin(user, payment) and None not in {person, *authors} and person not in authors


def persons(payment):
    users = approvers(payment.id)
    return {person_of(user) for user in users if may_approve(user, payment)}


@bp.post("/payments/<int:payment_id>/approve")
@login_required
def approve(payment_id):
    payment = find_payment(payment_id)
    if not may_approve(current_user, payment):
        abort(403)
    if request.get_json().get("revision") != payment.revision:
        abort(409)
    db.session.add(Approval(payment_id=payment.id, approver_id=current_user.id, revision=payment.revision))
    db.session.commit()
    return "", 204


@bp.post("/payments/<int:payment_id>/pay")
@login_required
def pay(payment_id):
    payment = find_payment(payment_id)
    needed = 2 if total(payment) >= LIMIT else 1
    if len(persons(payment)) < needed:
        abort(403)
    update = db.update(Payment).filter_by(id=payment.id, revision=payment.revision, paid=False)
    if db.session.execute(update.values(paid=True)).rowcount != 1:
        abort(409)
    db.session.commit()
    return "", 204
