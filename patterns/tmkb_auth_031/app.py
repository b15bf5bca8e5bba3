"""Sales of organizations, and a forecast that only the plan "business" includes. Payments are left out."""

from datetime import UTC, datetime, timedelta

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

FEATURES = {
    "free": {"sales"},
    "starter": {"sales", "export"},
    "business": {"sales", "export", "forecast"},
    "closed": set(),
}


def now():
    return datetime.now(UTC).replace(tzinfo=None)


class Subscription(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    plan = mapped_column(db.String, nullable=False)
    paid_until = mapped_column(db.DateTime, nullable=False)

    @property
    def features(self):
        return FEATURES[self.plan if self.paid_until > now() else "free"]


class Sale(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)


class Mail(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("forecast", __name__)


def send_mail(user, text):
    db.session.add(Mail(user_id=user.id, text=text))
    db.session.commit()


@bp.post("/sales")
@login_required
def create_sale():
    db.session.add(Sale(organization_id=current_user.organization_id, amount=request.get_json()["amount"]))
    db.session.commit()
    return "", 204


def event_subscribe(organization_id, plan):
    """Let an organization pay for a plan, for 30 days."""
    paid_until = now() + timedelta(days=30)
    db.session.merge(Subscription(organization_id=organization_id, plan=plan, paid_until=paid_until))


def event_cancel(organization_id):
    """Delete the subscription of an organization."""
    db.session.execute(db.delete(Subscription).filter_by(organization_id=organization_id))


def state_mails():
    return [[mail.user_id, mail.text] for mail in db.session.scalars(db.select(Mail).order_by(Mail.id))]
