"""Budgets of organizations. A version of the code shows and sets the budget of the organization that is named."""

from flask import Blueprint, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Budget(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    amount = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer)  # none for budgets of organizations that were closed


bp = Blueprint("budgets", __name__)


def parameters():
    """Return all parameters of query, form and JSON body; a later one replaces an earlier one."""
    merged = dict(request.values.items(multi=True))
    body = request.get_json(silent=True)
    return {**merged, **body} if isinstance(body, dict) else merged


def find_budget(organization_id):
    return db.first_or_404(db.select(Budget).filter_by(organization_id=organization_id))


def event_begin():
    db.session.add_all([Budget(amount=4200, organization_id=1), Budget(amount=31, organization_id=2)])
    db.session.add(Budget(amount=7700, organization_id=None))


def state_others():
    """Return the budgets that no member of Globex, and nobody without an organization, may change."""
    budgets = db.select(Budget).where(db.or_(Budget.organization_id != 2, Budget.organization_id.is_(None)))
    return [budget.amount for budget in db.session.scalars(budgets.order_by(Budget.id))]
