"""The CDN passes requests with a session through, and stores only what is public."""

from app import Discount, Link, Order, bp, edge
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def lifetime(request, _url, response):
    if "X-User" in request.headers or not response.cache_control.public:
        return 0
    return response.cache_control.max_age


edge.lifetime = lifetime


@bp.get("/account/<path:page>")
@login_required
def account(page):
    return {"iban": f"IBAN-{current_user.name}"}


@bp.get("/orders")
@login_required
def orders():
    own = db.select(Order.text).filter_by(organization_id=current_user.organization_id)
    response = jsonify(db.session.scalars(own).all())
    response.cache_control.max_age = 60
    return response


@bp.get("/prices")
def prices():
    discount = db.session.get(Discount, current_user.id) if current_user.is_authenticated else None
    response = jsonify(tent=100, discount=discount and discount.text)
    response.cache_control.public = True
    response.cache_control.max_age = 60
    return response


@bp.get("/shared/<token>")
def shared(token):
    response = jsonify(db.session.get(Order, db.get_or_404(Link, token).order_id).text)
    response.cache_control.max_age = 60
    return response


# endregion
