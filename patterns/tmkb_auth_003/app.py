"""Bids that admins delete by a timestamp. A version of the code shows, edits, copies and restores them."""

from time import time

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Bid(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    price = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)
    deleted_at = mapped_column(db.Integer)  # Unix time
    organization_id = mapped_column(db.ForeignKey("organization.id"), nullable=False)


bp = Blueprint("bids", __name__)


@bp.post("/bids")
@login_required
def create_bid():
    body = request.get_json()
    bid = Bid(price=body["price"], text=body["text"], organization_id=current_user.organization_id)
    db.session.add(bid)
    db.session.commit()
    return {"id": bid.id}, 201


@bp.get("/bids")
@login_required
def list_bids():
    bids = db.select(Bid).filter_by(organization_id=current_user.organization_id, deleted_at=None)
    return jsonify([{"id": bid.id, "text": bid.text} for bid in db.session.scalars(bids)])


@bp.delete("/bids/<int:bid_id>")
@login_required
def delete_bid(bid_id):
    bids = db.select(Bid).filter_by(organization_id=current_user.organization_id, deleted_at=None)
    bid = db.first_or_404(bids.filter_by(id=bid_id))
    if current_user.role != "admin":
        abort(403)
    bid.deleted_at = int(time())
    db.session.commit()
    return "", 204


def state_bids():
    rows = db.session.execute(db.text("SELECT id, price, text, deleted_at, organization_id FROM bid ORDER BY id"))
    return [list(row) for row in rows]
