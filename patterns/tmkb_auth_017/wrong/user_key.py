"""The keys contain the user's id, but not the role and the organization that the query uses."""

from app import Order, bp, cache
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def scope():
    own = {"organization_id": current_user.organization_id}
    return own if current_user.role == "admin" else {**own, "seller_id": current_user.id}


@bp.get("/dashboard")
@login_required
@cache.cached(timeout=300, make_cache_key=lambda: f"{current_user.id}")
def dashboard():
    return list(db.session.scalars(db.select(Order.number).filter_by(**scope())))


@cache.memoize(timeout=300)
def revenue(user_id, month):
    return db.session.scalar(db.select(db.func.sum(Order.amount)).filter_by(month=month, **scope())) or 0


@bp.get("/revenue/<month>")
@login_required
def show_revenue(month):
    return jsonify(revenue(current_user.id, month))
