"""The features are copied to the session when the user first needs one."""

from app import Sale, Subscription, bp, send_mail
from celery import shared_task
from flask import abort, has_request_context, session
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def require_feature(organization_id, feature):
    if has_request_context() and feature in session.get("features", ()):
        return
    subscription = db.session.scalar(db.select(Subscription).filter_by(organization_id=organization_id))
    if subscription is None or feature not in subscription.features:
        abort(403)
    if has_request_context():
        session["features"] = sorted(subscription.features)


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
