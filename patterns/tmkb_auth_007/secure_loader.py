"""Invoices loaded by one function, which hands out only those of the user's own organization."""

from flask import Blueprint, abort, request, url_for
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    total = db.Column(db.Integer, nullable=False)
    state = db.Column(db.String, nullable=False, default="open")
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("invoices", __name__)


@bp.post("/invoices")
@login_required
def create_invoice():
    invoice = Invoice(total=request.get_json()["total"], organization_id=current_user.organization_id)
    db.session.add(invoice)
    db.session.commit()
    return {"url": url_for(".show_invoice", invoice_id=invoice.id)}, 201


def invoice_or_404(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    if invoice.organization_id != current_user.organization_id:
        abort(404)
    return invoice


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show_invoice(invoice_id):
    invoice = invoice_or_404(invoice_id)
    return {"total": invoice.total, "state": invoice.state}


@bp.post("/invoices/<int:invoice_id>/cancel")
@login_required
def cancel_invoice(invoice_id):
    invoice = invoice_or_404(invoice_id)
    invoice.state = "cancelled"
    db.session.commit()
    return "", 204


# endregion
