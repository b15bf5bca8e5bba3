"""The creator of an invoice keeps access after leaving the organization or handing the invoice over."""

from app import Invoice, bp
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_invoices():
    ours = Invoice.organization_id == current_user.organization_id
    if current_user.role != "admin":
        ours &= Invoice.handler_id == current_user.id
    return db.select(Invoice).where(ours | (Invoice.created_by == current_user.id))


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show_invoice(invoice_id):
    invoice = db.first_or_404(visible_invoices().filter_by(id=invoice_id))
    return {"total": invoice.total, "state": invoice.state}


@bp.post("/invoices/<int:invoice_id>/cancel")
@login_required
def cancel_invoice(invoice_id):
    invoice = db.first_or_404(visible_invoices().filter_by(id=invoice_id))
    invoice.state = "cancelled"
    db.session.commit()
    return "", 204
