"""Expense claims that a team edits together; a table says for each source and target who may make the move."""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Claim(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    author_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    amount = db.Column(db.Integer, nullable=False)
    state = db.Column(db.String, nullable=False)


# region example
bp = Blueprint("claims", __name__)


def author(claim):
    return claim.author_id == current_user.id


# region template
def approver(claim):
    return current_user.role == "admin" and not author(claim)


MOVES = {("draft", "submitted"): author, ("submitted", "approved"): approver, ("submitted", "rejected"): approver}


def move(claim, new):
    may = MOVES.get((claim.state, new))
    if may is None or not may(claim):
        abort(403)
    claim.state = new


# endregion


@bp.post("/claims")
@login_required
def create_claim():
    body = request.get_json()
    claim = Claim(author_id=current_user.id, organization_id=current_user.organization_id, amount=body["amount"])
    claim.state = "draft"
    db.session.add(claim)
    db.session.commit()
    return jsonify(id=claim.id, state=claim.state), 201


@bp.patch("/claims/<int:claim_id>")
@login_required
def update_claim(claim_id):
    claim = db.first_or_404(db.select(Claim).filter_by(id=claim_id, organization_id=current_user.organization_id))
    body = request.get_json()
    if "amount" in body:
        if claim.state != "draft":
            abort(409)
        claim.amount = body["amount"]
    if "state" in body:
        move(claim, body["state"])
    db.session.commit()
    return jsonify(id=claim.id, state=claim.state)


# endregion
