"""One function loads an invoice by its number and refuses what the user may not reach."""

from app import Invoice, bp
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def invoice_or_404(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    if invoice.organization_id != current_user.organization_id:
        abort(404)
    if current_user.role != "admin" and invoice.handler_id != current_user.id:
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
