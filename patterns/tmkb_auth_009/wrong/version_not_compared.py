"""Each UPDATE increases the version, and none requires the one that was checked."""

from app import Claim, bp, find_claim, new_claim, read_body, shown
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def may_move(claim, new):
    mine = claim.author_id == current_user.id
    decide = current_user.role == "admin" and not mine and claim.edited_by != current_user.id
    moves = {("draft", "submitted"): mine, ("submitted", "approved"): decide, ("submitted", "rejected"): decide}
    return moves.get((claim.state, new), False)


def move(claim, new):
    if not may_move(claim, new):
        abort(403)
    write(claim, state=new)


def edit(claim, amount):
    if claim.state != "draft":
        abort(409)
    write(claim, amount=amount, edited_by=current_user.id)


def write(claim, **values):
    update = db.update(Claim).filter_by(id=claim.id)
    if db.session.execute(update.values(version=Claim.version + 1, **values)).rowcount != 1:
        abort(409)


@bp.post("/claims")
@login_required
def create_claim():
    body = read_body()
    claim = new_claim(body["amount"])
    db.session.add(claim)
    db.session.commit()
    return shown(claim), 201


@bp.patch("/claims/<int:claim_id>")
@login_required
def update_claim(claim_id):
    claim = find_claim(claim_id)
    body = read_body()
    if "amount" in body:
        edit(claim, body["amount"])
    if "state" in body:
        move(claim, body["state"])
    db.session.commit()
    return shown(claim)
