"""Orders of a shop, which guests can place without an account. A version of the code attaches them to accounts.

A guest's browser gets a random key together with the order, and opens and changes the order with it.
"""

import hashlib
import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Order(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    email = mapped_column(db.String, nullable=False)
    address = mapped_column(db.String, nullable=False)
    key_hash = mapped_column(db.String)
    user_id = mapped_column(db.Integer)


class Profile(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    email = mapped_column(db.String)
    verified_email = mapped_column(db.String)


bp = Blueprint("orders", __name__)


def digest(key):
    return hashlib.sha256(str(key).encode()).hexdigest()


def profile():
    return db.session.get_one(Profile, current_user.id)


def find_order(order_id):
    """Return an order of the user, or the one to which the guest's key belongs."""
    if current_user.is_authenticated:
        return db.first_or_404(db.select(Order).filter_by(id=order_id, user_id=current_user.id))
    key = digest(request.headers.get("X-Guest-Key"))
    return db.first_or_404(db.select(Order).filter_by(id=order_id, key_hash=key))


@bp.post("/orders")
def place_order():
    body = request.get_json()
    order = Order(email=body["email"].lower(), address=body["address"])
    key = None
    if current_user.is_authenticated:
        order.user_id = current_user.id
    else:
        key = secrets.token_urlsafe()
        order.key_hash = digest(key)
    db.session.add(order)
    db.session.commit()
    return {"id": order.id, "key": key}, 201


@bp.get("/orders/<int:order_id>")
def show_order(order_id):
    return {"address": find_order(order_id).address}


@bp.put("/orders/<int:order_id>/address")
def change_address(order_id):
    order = find_order(order_id)
    still = db.update(Order).filter_by(id=order.id, user_id=order.user_id, key_hash=order.key_hash)
    if not db.session.execute(still.values(address=request.get_json()["address"])).rowcount:
        abort(404)  # claimed meanwhile
    db.session.commit()
    return "", 204


@bp.put("/profile/email")
@login_required
def change_email():
    profile().email = request.get_json()["email"].lower()
    db.session.commit()
    return "", 204


def event_add_profile(user, email, verified):
    user_id = db.session.scalar(db.select(User.id).filter_by(name=user))
    db.session.add(Profile(user_id=user_id, email=email, verified_email=email if verified else None))


def event_verify(user):
    """The user has opened the link that was sent to the address of the profile."""
    user_id = db.session.scalar(db.select(User.id).filter_by(name=user))
    found = db.session.get_one(Profile, user_id)
    found.verified_email = found.email


def state_orders():
    return [[each.id, each.user_id, each.address] for each in db.session.scalars(db.select(Order).order_by(Order.id))]
