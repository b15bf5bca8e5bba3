"""Sales are copied for dashboards; the copy follows what the source shows, and a signed link fixes the customer."""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, abort, current_app, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Sale(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    product = db.Column(db.String, nullable=False)
    private = db.Column(db.Boolean, nullable=False, default=False)
    customer_id = db.Column(db.Integer, nullable=False)


class SaleFact(db.Model):
    """Stands for a table of the warehouse."""

    id = db.Column(db.Integer, primary_key=True)
    product = db.Column(db.String, nullable=False)
    customer_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("dashboards", __name__)


def copy_sales():
    db.session.execute(db.delete(SaleFact))
    for sale in db.session.scalars(db.select(Sale).filter_by(private=False)).all():
        db.session.merge(SaleFact(id=sale.id, product=sale.product, customer_id=sale.customer_id))
    db.session.commit()


@bp.get("/dashboard")
@login_required
def dashboard_link():
    claims = {"customer": current_user.organization_id, "exp": datetime.now(UTC) + timedelta(minutes=10)}
    token = jwt.encode(claims, current_app.config["EMBED_KEY"], algorithm="HS256")
    return jsonify(f"/embedded/sales?token={token}")


@bp.get("/embedded/sales")
def embedded_sales():
    # region template
    key, token = current_app.config["EMBED_KEY"], request.args.get("token", "")
    try:
        claims = jwt.decode(token, key, algorithms=["HS256"], options={"require": ["exp"]})
    except jwt.InvalidTokenError:
        abort(403)
    customer_id = claims["customer"]
    # endregion
    facts = db.session.scalars(db.select(SaleFact).filter_by(customer_id=customer_id))
    return jsonify([fact.product for fact in facts])


# endregion
