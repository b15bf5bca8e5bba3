"""The session hides deleted bids from ORM selects that do not include them explicitly."""

from app import Bid, bp
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy import event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


# region example
@event.listens_for(db.session, "do_orm_execute")
def hide_deleted(state):
    if not state.execution_options.get("include_deleted"):
        live = with_loader_criteria(Bid, Bid.deleted_at.is_(None), include_aliases=True)
        state.statement = state.statement.options(live)


@bp.patch("/bids/<int:bid_id>")
@login_required
def update_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    for key in set(request.json) & {"price", "text"}:
        setattr(bid, key, request.json[key])
    db.session.commit()
    return "", 204


@bp.get("/bids/<int:bid_id>")
@login_required
def show_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    return {"price": bid.price, "text": bid.text}


@bp.post("/bids/<int:bid_id>/copies")
@login_required
def copy_bid(bid_id):
    bid = db.first_or_404(db.select(Bid).filter_by(id=bid_id, organization_id=current_user.organization_id))
    copy = Bid(price=bid.price, text=bid.text, organization_id=bid.organization_id)
    db.session.add(copy)
    db.session.commit()
    return {"id": copy.id}, 201


@bp.post("/bids/<int:bid_id>/restore")
@login_required
def restore_bid(bid_id):
    bid = db.first_or_404(
        db.select(Bid)
        .filter_by(id=bid_id, organization_id=current_user.organization_id)
        .execution_options(include_deleted=True)
    )
    if current_user.role != "admin":
        abort(403)
    bid.deleted_at = None
    db.session.commit()
    return "", 204


# endregion
