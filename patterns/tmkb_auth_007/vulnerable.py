"""Any signed-in user opens and cancels every invoice by its number."""

from app import Invoice, bp
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.get("/invoices/<int:invoice_id>")
@login_required
def show_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    return {"total": invoice.total, "state": invoice.state}


@bp.post("/invoices/<int:invoice_id>/cancel")
@login_required
def cancel_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.state = "cancelled"
    db.session.commit()
    return "", 204


# endregion
