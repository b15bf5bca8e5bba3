"""Invoices of organizations, which only administrators may void. A version of the code shows and voids them."""

from flask import Blueprint, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    state = mapped_column(db.String, nullable=False, default="open")
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("invoices", __name__)


def sent_ids():
    return request.get_json()["ids"]


def event_issue(organization):
    """Create an invoice and return its id."""
    invoice = Invoice(organization_id=organization)
    db.session.add(invoice)
    db.session.flush()
    return {"id": invoice.id}


def state_invoices():
    return list(db.session.scalars(db.select(Invoice.state).order_by(Invoice.id)))
