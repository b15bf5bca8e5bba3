"""Invoices of organizations, each handled by a member. A version of the code shows and cancels them."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    total = mapped_column(db.Integer)
    state = mapped_column(db.String, default="open")
    created_by = mapped_column(db.Integer)
    handler_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("invoices", __name__)


@bp.post("/invoices")
@login_required
def create_invoice():
    if current_user.organization_id is None:
        abort(403)
    invoice = Invoice(
        total=request.get_json()["total"],
        created_by=current_user.id,
        handler_id=current_user.id,
        organization_id=current_user.organization_id,
    )
    db.session.add(invoice)
    db.session.commit()
    return {"id": invoice.id}, 201


def event_assign(invoice, handler):
    db.session.get(Invoice, int(invoice)).handler_id = handler


def state_invoices():
    return [[invoice.total, invoice.state] for invoice in db.session.scalars(db.select(Invoice).order_by(Invoice.id))]
