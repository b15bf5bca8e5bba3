"""Each change is one UPDATE whose WHERE requires the version, the state and the person."""

from app import Claim, bp, find_claim, new_claim, read_body, shown
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def change(claim, *conditions, **values):
    update = db.update(Claim).filter_by(id=claim.id, version=claim.version).where(*conditions)
    if db.session.execute(update.values(version=claim.version + 1, **values)).rowcount != 1:
        abort(409)


def move(claim, new):
    me = current_user.id
    if new == "submitted":
        change(claim, Claim.state == "draft", Claim.author_id == me, state=new)
    elif new in ("approved", "rejected") and current_user.role == "admin":
        change(claim, Claim.state == "submitted", Claim.author_id != me, Claim.edited_by != me, state=new)
    else:
        abort(403)


def edit(claim, amount):
    change(claim, Claim.state == "draft", amount=amount, edited_by=current_user.id)


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


# endregion
