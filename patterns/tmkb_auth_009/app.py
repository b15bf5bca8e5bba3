"""Expense claims of organizations, which members write together. A version of the code creates and updates them."""

from flask import Blueprint, abort, request
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Claim(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    author_id = mapped_column(db.Integer, nullable=False)
    edited_by = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    state = mapped_column(db.String, nullable=False, default="draft")
    version = mapped_column(db.Integer, nullable=False, default=1)


bp = Blueprint("claims", __name__)


def read_body():
    body = request.get_json()
    if not isinstance(body.get("amount", 0), int) or not isinstance(body.get("state", ""), str):
        abort(422)
    return body


def new_claim(amount):
    me = current_user
    return Claim(author_id=me.id, edited_by=me.id, organization_id=me.organization_id, amount=amount)


def find_claim(claim_id):
    return db.first_or_404(db.select(Claim).filter_by(id=claim_id, organization_id=current_user.organization_id))


def shown(claim):
    return {"id": claim.id, "state": claim.state, "amount": claim.amount}


def state_claims():
    return [shown(claim) for claim in db.session.scalars(db.select(Claim).order_by(Claim.id))]
