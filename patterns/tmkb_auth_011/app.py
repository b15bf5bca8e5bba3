"""Invoices of organizations, which only administrators may void. A version of the code shows and voids them."""

from typing import ClassVar

from flask import Blueprint, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    state = mapped_column(db.String, nullable=False, default="open")
    organization_id = mapped_column(db.Integer, nullable=False)
    kind = mapped_column(db.String, nullable=False)
    __mapper_args__: ClassVar = {"polymorphic_on": "kind", "polymorphic_identity": "invoice"}


class CreditNote(Invoice):
    __mapper_args__: ClassVar = {"polymorphic_identity": "credit note"}


bp = Blueprint("invoices", __name__)


def sent_ids():
    return request.get_json()["ids"]


def event_issue(organization, kind="invoice"):
    """Create an invoice or a credit note, and return its id."""
    models = {"invoice": Invoice, "credit note": CreditNote}
    invoice = models[kind](organization_id=organization)
    db.session.add(invoice)
    db.session.flush()
    return {"id": invoice.id}


def state_invoices():
    return list(db.session.scalars(db.select(Invoice.state).order_by(Invoice.id)))
