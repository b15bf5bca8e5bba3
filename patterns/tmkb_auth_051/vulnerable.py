"""Sales are copied for dashboards; the copy keeps everything, and the link to it says whose numbers are wanted."""

from flask import Blueprint, jsonify, request
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
    for sale in db.session.scalars(db.select(Sale)).all():
        db.session.merge(SaleFact(id=sale.id, product=sale.product, customer_id=sale.customer_id))
    db.session.commit()


@bp.get("/dashboard")
@login_required
def dashboard_link():
    return jsonify(f"/embedded/sales?customer={current_user.organization_id}")


@bp.get("/embedded/sales")
def embedded_sales():
    customer_id = request.args["customer"]
    facts = db.session.scalars(db.select(SaleFact).filter_by(customer_id=customer_id))
    return jsonify([fact.product for fact in facts])


# endregion
