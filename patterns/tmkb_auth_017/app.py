"""Orders of organizations. Administrators see all of them, sellers see their own.

A version of the code caches the results.
"""

from flask import Blueprint
from flask_caching import Cache
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Order(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    number = mapped_column(db.String, nullable=False)
    month = mapped_column(db.String, nullable=False, default="2026-11")
    amount = mapped_column(db.Integer, nullable=False)
    seller_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("orders", __name__)
cache = Cache()


def event_sell(number, amount, seller_id, organization_id):
    db.session.add(Order(number=number, amount=amount, seller_id=seller_id, organization_id=organization_id))
