"""The scope of the user limits the query and is a part of the cache key."""

from app import Order, bp, cache
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def scope():
    own = {"organization_id": current_user.organization_id}
    return own if current_user.role == "admin" else {**own, "seller_id": current_user.id}


@cache.memoize(300)
def order_numbers(scope):
    return list(db.session.scalars(db.select(Order.number).filter_by(**scope)))


# endregion


@bp.get("/dashboard")
@login_required
def dashboard():
    return order_numbers(scope())


@cache.memoize(300)
def revenue(scope, month):
    return db.session.scalar(db.select(db.func.sum(Order.amount)).filter_by(month=month, **scope)) or 0


@bp.get("/revenue/<month>")
@login_required
def show_revenue(month):
    return jsonify(revenue(scope(), month))


# endregion
