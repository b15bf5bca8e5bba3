"""The check runs after the change is stored."""

from app import Bid, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def live_bids():
    return db.select(Bid).filter_by(organization_id=current_user.organization_id, deleted_at=None)


@bp.patch("/bids/<int:bid_id>")
@login_required
def update_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    for key in set(request.json) & {"price", "text"}:
        setattr(bid, key, request.json[key])
    db.session.commit()
    if bid.deleted_at is not None:
        abort(404)
    return "", 204


@bp.get("/bids/<int:bid_id>")
@login_required
def show_bid(bid_id):
    bid = db.first_or_404(live_bids().filter_by(id=bid_id))
    return {"price": bid.price, "text": bid.text}


@bp.post("/bids/<int:bid_id>/copies")
@login_required
def copy_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    copy = Bid(price=bid.price, text=bid.text, organization_id=bid.organization_id)
    db.session.add(copy)
    db.session.commit()
    if bid.deleted_at is not None:
        abort(404)
    return {"id": copy.id}, 201


@bp.post("/bids/<int:bid_id>/restore")
@login_required
def restore_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    if current_user.role != "admin":
        abort(403)
    bid.deleted_at = None
    db.session.commit()
    return "", 204
