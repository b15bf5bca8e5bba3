"""Bids are deleted by a time stamp; every path finds live ones only, and restoring alone clears it."""

from time import time

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Bid(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    price = db.Column(db.Integer, nullable=False)
    text = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)
    deleted_at = db.Column(db.Integer)  # Unix time


# region example
bp = Blueprint("bids", __name__)


# region template
def live_bids():
    return db.select(Bid).filter_by(organization_id=current_user.organization_id, deleted_at=None)


@bp.patch("/bids/<int:bid_id>")
@login_required
def update_bid(bid_id):
    bid = db.first_or_404(live_bids().filter_by(id=bid_id))
    for key in set(request.json) & {"price", "text"}:
        setattr(bid, key, request.json[key])
    # endregion
    db.session.commit()
    return "", 204


@bp.post("/bids/<int:bid_id>/copies")
@login_required
def copy_bid(bid_id):
    bid = db.first_or_404(live_bids().filter_by(id=bid_id))
    copy = Bid(price=bid.price, text=bid.text, organization_id=bid.organization_id)
    db.session.add(copy)
    db.session.commit()
    return jsonify({"id": copy.id}), 201


@bp.get("/bids")
@login_required
def list_bids():
    return jsonify([{"id": bid.id, "price": bid.price, "text": bid.text} for bid in db.session.scalars(live_bids())])


@bp.delete("/bids/<int:bid_id>")
@login_required
def delete_bid(bid_id):
    if current_user.role != "admin":
        abort(403)
    bid = db.first_or_404(live_bids().filter_by(id=bid_id))
    bid.deleted_at = int(time())
    db.session.commit()
    return jsonify({"id": bid.id, "deleted_at": bid.deleted_at})


@bp.post("/bids/<int:bid_id>/restore")
@login_required
def restore_bid(bid_id):
    if current_user.role != "admin":
        abort(403)
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    bid.deleted_at = None
    db.session.commit()
    return "", 204


# endregion
