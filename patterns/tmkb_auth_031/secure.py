"""The forecast is a paid feature; where it is computed, whoever asks for it, the subscription of now is looked up."""

from datetime import UTC, datetime

from flask import Blueprint, abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Subscription(db.Model):
    organization_id = db.Column(db.Integer, primary_key=True)
    plan = db.Column(db.String, nullable=False)
    paid_until = db.Column(db.DateTime, nullable=False)


class Sale(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    amount = db.Column(db.Integer, nullable=False)


def now():
    return datetime.now(UTC).replace(tzinfo=None)


# region example
bp = Blueprint("forecast", __name__)

FEATURES = {"free": {"sales"}, "business": {"sales", "forecast"}}


def features_of(organization_id):
    current = db.select(Subscription).filter_by(organization_id=organization_id)
    subscription = db.session.scalar(current.where(Subscription.paid_until > now()))
    return FEATURES[subscription.plan if subscription else "free"]


# region template
def require_feature(feature):
    if feature not in features_of(current_user.organization_id):
        abort(403)


# endregion


def forecast():
    require_feature("forecast")
    sales = db.session.scalars(db.select(Sale.amount).filter_by(organization_id=current_user.organization_id))
    return 2 * sum(sales)


@bp.get("/features")
@login_required
def list_features():
    return jsonify(sorted(features_of(current_user.organization_id)))


@bp.get("/forecast")
@login_required
def show_forecast():
    return jsonify(forecast=forecast())


@bp.get("/export/forecast.csv")
@login_required
def export_forecast():
    return f"forecast\n{forecast()}\n", {"Content-Type": "text/csv"}


# endregion
