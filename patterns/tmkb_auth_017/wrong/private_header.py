"""The response is marked as private for browsers and proxies; the server's cache stays shared."""

from app import Order, bp, cache
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def scope():
    own = {"organization_id": current_user.organization_id}
    return own if current_user.role == "admin" else {**own, "seller_id": current_user.id}


@bp.after_request
def mark_private(response):
    response.cache_control.private = True
    return response


@bp.get("/dashboard")
@login_required
@cache.cached(timeout=300)
def dashboard():
    return list(db.session.scalars(db.select(Order.number).filter_by(**scope())))


@cache.memoize(timeout=300)
def revenue(month):
    return db.session.scalar(db.select(db.func.sum(Order.amount)).filter_by(month=month, **scope())) or 0


@bp.get("/revenue/<month>")
@login_required
def show_revenue(month):
    return jsonify(revenue(month))
