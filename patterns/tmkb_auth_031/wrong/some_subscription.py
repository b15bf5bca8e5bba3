"""A subscription with the feature must exist, of whatever organization."""

from app import FEATURES, Sale, Subscription, bp, send_mail
from celery import shared_task
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def features_of(organization_id):
    subscription = db.session.scalar(db.select(Subscription).filter_by(organization_id=organization_id))
    return subscription.features if subscription else FEATURES["free"]


def require_feature(organization_id, feature):
    subscriptions = db.session.scalars(db.select(Subscription))
    features = FEATURES["free"].union(*(subscription.features for subscription in subscriptions))
    if feature not in features:
        abort(403)


def forecast(organization_id):
    require_feature(organization_id, "forecast")
    sales = db.session.scalars(db.select(Sale.amount).filter_by(organization_id=organization_id))
    return 2 * sum(sales)


@bp.get("/features")
@login_required
def list_features():
    """Tell the page what to show."""
    return sorted(features_of(current_user.organization_id))


@bp.get("/sales")
@login_required
def list_sales():
    require_feature(current_user.organization_id, "sales")
    return list(db.session.scalars(db.select(Sale.amount).filter_by(organization_id=current_user.organization_id)))


@bp.get("/forecast")
@login_required
def show_forecast():
    return {"forecast": forecast(current_user.organization_id)}


@bp.get("/export/forecast.csv")
@login_required
def export_forecast():
    return f"forecast\n{forecast(current_user.organization_id)}\n", {"Content-Type": "text/csv"}


@bp.post("/forecast/mail")
@login_required
def request_mail():
    mail_forecast.delay(current_user.id)
    return "", 202


@shared_task
def mail_forecast(user_id):
    user = db.session.get(User, user_id)
    send_mail(user, f"forecast {forecast(user.organization_id)}")
