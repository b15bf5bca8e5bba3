"""Sales of customers, and their copy for analytics. A version of the code copies sales and embeds a dashboard."""

from datetime import UTC, datetime, timedelta

import jwt
from celery import current_app
from flask import Blueprint, abort, jsonify
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

# Key of the tokens, from the configuration of a real application.
KEY = "0123456789abcdef0123456789abcdef"


class Sale(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    product = mapped_column(db.String, nullable=False)
    private = mapped_column(db.Boolean, nullable=False, default=False)
    customer_id = mapped_column(db.Integer)  # none: not yet assigned to a customer


class Job(db.Model):
    """A job, locked while it runs."""

    name = mapped_column(db.String, primary_key=True)


class SaleFact(db.Model):
    """A sale in the warehouse."""

    id = mapped_column(db.Integer, primary_key=True)
    product = mapped_column(db.String, nullable=False)
    customer_id = mapped_column(db.Integer)


bp = Blueprint("dashboards", __name__)


def signed(**claims):
    return jwt.encode({"exp": datetime.now(UTC) + timedelta(minutes=10), **claims}, KEY, algorithm="HS256")


def current_customer():
    if current_user.organization_id is None:
        abort(403)
    return current_user.organization_id


def fact(sale):
    return SaleFact(id=sale.id, product=sale.product, customer_id=sale.customer_id)


def products(customer_id):
    return jsonify(list(db.session.scalars(db.select(SaleFact.product).filter_by(customer_id=customer_id))))


def event_job(name):
    db.session.add(Job(name=name))


def event_sale(product, customer):
    db.session.add(Sale(product=product, customer_id=customer))


def event_changed(product, **values):
    db.session.execute(db.update(Sale).filter_by(product=product).values(**values))


def event_deleted(product):
    db.session.execute(db.delete(Sale).filter_by(product=product))


def event_night():
    """Queue what runs every night."""
    current_app.send_task("copy_sales")


def event_copy():
    """Copy in a second worker, without the queue."""
    current_app.tasks["copy_sales"]()


def event_newsletter_token(customer):
    """Return the token of a link in the newsletter, which is signed with the same key."""
    return {"token": signed(aud="newsletter", customer=customer)}


def event_old_token(customer):
    """Return a token from before tokens had an audience."""
    return {"token": signed(customer=customer)}


def event_token(**claims):
    """Return a token with these claims, signed with the same key."""
    return {"token": signed(**claims)}


def event_endless_token(customer):
    """Return a token from before tokens had an expiry."""
    return {"token": jwt.encode({"aud": "dashboard", "customer": customer}, KEY, algorithm="HS256")}
