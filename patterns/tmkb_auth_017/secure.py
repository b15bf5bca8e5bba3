"""Administrators see all orders of their organization, sellers their own; both caches name what their asker may see."""

from flask import Blueprint, jsonify
from flask_caching import Cache
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Order(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    number = db.Column(db.String, nullable=False)
    month = db.Column(db.String, nullable=False)
    amount = db.Column(db.Integer, nullable=False)
    seller_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("orders", __name__)
cache = Cache()


def reach(actor):
    return actor.organization_id, None if actor.role == "admin" else actor.id


def visible(organization_id, seller_id):
    orders = db.select(Order).filter_by(organization_id=organization_id)
    return orders if seller_id is None else orders.filter_by(seller_id=seller_id)


# region template
def dashboard_key():
    return f"dashboard:{reach(current_user)}"


@bp.get("/dashboard")
@login_required
@cache.cached(timeout=300, make_cache_key=dashboard_key)
def dashboard():
    # endregion
    return jsonify([order.number for order in db.session.scalars(visible(*reach(current_user)))])


@cache.memoize(timeout=300)
def revenue(reach, month):
    orders = db.session.scalars(visible(*reach).filter_by(month=month))
    return sum(order.amount for order in orders)


@bp.get("/revenue/<month>")
@login_required
def show_revenue(month):
    return jsonify(revenue(reach(current_user), month))


# endregion
