"""The state is one more field of a claim, so everybody who may edit a claim may also approve it."""

from app import bp, find_claim, new_claim, read_body, shown
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def move(claim, new):
    if new not in {"draft", "submitted", "approved", "rejected"}:
        abort(422)
    claim.state = new


def edit(claim, amount):
    claim.amount, claim.edited_by = amount, current_user.id


@bp.post("/claims")
@login_required
def create_claim():
    body = read_body()
    claim = new_claim(body["amount"])
    claim.state = body.get("state", "draft")
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


# endregion
