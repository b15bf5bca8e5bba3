"""Only the page that shows an invoice is limited."""

from app import Invoice, bp
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_invoices():
    ours = db.select(Invoice).filter_by(organization_id=current_user.organization_id)
    return ours if current_user.role == "admin" else ours.filter_by(handler_id=current_user.id)


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show_invoice(invoice_id):
    invoice = db.first_or_404(visible_invoices().filter_by(id=invoice_id))
    return {"total": invoice.total, "state": invoice.state}


@bp.post("/invoices/<int:invoice_id>/cancel")
@login_required
def cancel_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.state = "cancelled"
    db.session.commit()
    return "", 204
