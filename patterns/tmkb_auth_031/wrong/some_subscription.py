"""A subscription with the feature must exist, of whatever organization."""

from app import Sale, Subscription, bp, send_mail
from celery import shared_task
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def require_feature(organization_id, feature):
    subscriptions = db.session.scalars(db.select(Subscription))
    if not any(feature in subscription.features for subscription in subscriptions):
        abort(403)


def forecast(organization_id):
    require_feature(organization_id, "forecast")
    sales = db.session.scalars(db.select(Sale.amount).filter_by(organization_id=organization_id))
    return 2 * sum(sales)


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
