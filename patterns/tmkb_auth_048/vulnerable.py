"""Tools act with the application's permissions on whatever the model writes into their arguments."""

from app import Invoice, bp, model, run, tool
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@tool
def list_invoices(organization_id=None):
    chosen = organization_id or current_user.organization_id
    return list(db.session.scalars(db.select(Invoice.number).filter_by(organization_id=chosen)))


@tool
def pay_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.payments += 1
    db.session.commit()
    return "paid"


@bp.post("/chat")
@login_required
def chat():
    call = model(f"{current_user.name} writes: {request.json['message']}")
    return run(call)


# endregion
