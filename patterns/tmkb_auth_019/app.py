"""Payslips of organizations. A version of the code lists and counts them and publishes averages of departments."""

from flask import Blueprint
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Payslip(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    department = mapped_column(db.String, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("payslips", __name__, url_prefix="/payslips")


def event_pay(user_id, department, amounts, organization_id):
    """Pay one person several times."""
    for amount in amounts:
        db.session.add(Payslip(user_id=user_id, department=department, amount=amount, organization_id=organization_id))


def event_pay_each(user_ids, department, amounts, organization_id):
    for user_id, amount in zip(user_ids, amounts, strict=True):
        event_pay(user_id, department, [amount], organization_id)
