"""The keys contain the organization that the client names in a header, and the seller."""

from app import Order, bp, cache
from flask import jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def scope():
    own = {"organization_id": current_user.organization_id}
    return own if current_user.role == "admin" else {**own, "seller_id": current_user.id}


def key():
    organization_id = request.headers.get("X-Organization", str(current_user.organization_id))
    return f"{organization_id}:{scope().get('seller_id')}"


@bp.get("/dashboard")
@login_required
@cache.cached(timeout=300, make_cache_key=key)
def dashboard():
    return list(db.session.scalars(db.select(Order.number).filter_by(**scope())))


@cache.memoize(timeout=300)
def revenue(key, month):
    return db.session.scalar(db.select(db.func.sum(Order.amount)).filter_by(month=month, **scope())) or 0


@bp.get("/revenue/<month>")
@login_required
def show_revenue(month):
    return jsonify(revenue(key(), month))
