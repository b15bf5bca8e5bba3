"""Payments of organizations, which administrators approve. A version of the code approves and pays them.

A person can have several accounts, and the table `Identity` says to whom an account belongs. A payment needs one
approval, and two from `LIMIT` on.
"""

from datetime import UTC, datetime, timedelta

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db

LIMIT = 1000


def now():
    return datetime.now(UTC).replace(tzinfo=None)


class Identity(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    person = mapped_column(db.String, nullable=False)


class Payment(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    author_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    payee = mapped_column(db.Integer, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    revision = mapped_column(db.Integer, nullable=False, default=1)
    changed_at = mapped_column(db.DateTime, nullable=False, default=now, onupdate=now)
    paid = mapped_column(db.Boolean, nullable=False, default=False)


class Edit(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    payment_id = mapped_column(db.Integer, nullable=False)
    user_id = mapped_column(db.Integer, nullable=False)


class Approval(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    payment_id = mapped_column(db.Integer, nullable=False)
    revision = mapped_column(db.Integer, nullable=False)
    approver_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("payments", __name__)


def find_payment(payment_id):
    payment = db.first_or_404(db.select(Payment).filter_by(id=payment_id, organization_id=current_user.organization_id))
    if payment.paid:
        abort(409)
    return payment


def is_admin(user, payment):
    """Return whether a user is now an administrator of the payment's organization."""
    return user.role == "admin" and user.organization_id == payment.organization_id


def person_of(user):
    """Return the person to whom an account belongs; None for an account of a program."""
    return db.session.scalar(db.select(Identity.person).filter_by(user_id=user.id))


def writers(payment):
    """Return the persons who have written a revision of a payment, with None for an account without a person."""
    edits = db.select(Identity.person).select_from(Edit).outerjoin(Identity, Edit.user_id == Identity.user_id)
    return set(db.session.scalars(edits.where(Edit.payment_id == payment.id)))


def approvers(payment_id, revision=None):
    """Return the users of the approvals of a payment or of one revision, once for each approval."""
    users = db.select(User).join(Approval, Approval.approver_id == User.id).where(Approval.payment_id == payment_id)
    return list(db.session.scalars(users if revision is None else users.where(Approval.revision == revision)))


def total(payment):
    """Return the sum of the organization's payments to the payee that are open or were paid in the last 30 days."""
    counted = ~Payment.paid | (Payment.changed_at > now() - timedelta(days=30))
    payments = db.select(db.func.sum(Payment.amount)).where(counted)
    return db.session.scalar(payments.filter_by(organization_id=payment.organization_id, payee=payment.payee))


def read_body():
    body = request.get_json()
    if not all(type(body.get(key, 1)) is int and body.get(key, 1) > 0 for key in ("payee", "amount")):
        abort(422)
    return {key: body[key] for key in ("payee", "amount") if key in body}


@bp.post("/payments")
@login_required
def create_payment():
    payment = Payment(author_id=current_user.id, organization_id=current_user.organization_id, **read_body())
    db.session.add(payment)
    db.session.flush()
    db.session.add(Edit(payment_id=payment.id, user_id=current_user.id))
    db.session.commit()
    return {"id": payment.id}, 201


@bp.patch("/payments/<int:payment_id>")
@login_required
def edit_payment(payment_id):
    payment = find_payment(payment_id)
    update = db.update(Payment).filter_by(id=payment.id, revision=payment.revision, paid=False)
    if db.session.execute(update.values(revision=payment.revision + 1, **read_body())).rowcount != 1:
        abort(409)
    db.session.add(Edit(payment_id=payment.id, user_id=current_user.id))
    db.session.commit()
    return "", 204


def event_add_user(name, person=None):
    """Add an administrator of Acme."""
    user = User(name=name, role="admin", organization_id=1)
    db.session.add(user)
    db.session.flush()
    if person:
        db.session.add(Identity(user_id=user.id, person=person))


def event_identify(user, person):
    db.session.add(Identity(user_id=db.session.scalar(db.select(User.id).filter_by(name=user)), person=person))


def state_paid():
    payments = db.select(Payment).filter_by(paid=True).order_by(Payment.id)
    return [[payment.id, payment.payee, payment.amount] for payment in db.session.scalars(payments)]


def state_approvals():
    approvals = db.session.scalars(db.select(Approval).order_by(Approval.id))
    return [[approval.payment_id, approval.revision, approval.approver_id] for approval in approvals]
