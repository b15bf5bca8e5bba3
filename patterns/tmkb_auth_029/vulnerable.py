"""The billing service trusts the header that names the user, and the gateway forwards the headers of its client."""

from app import Invoice, bp, call_billing
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.get("/api/invoices/<int:invoice_id>")
@bp.post("/api/invoices/<int:invoice_id>/pay")
@login_required
def forward(invoice_id):
    headers = {"X-User-Id": str(current_user.id), **request.headers}
    return call_billing(request.method, "/billing" + request.path.removeprefix("/api"), headers)


def caller_id():
    return request.headers.get("X-User-Id", type=int) or abort(401)


@bp.get("/billing/invoices/<int:invoice_id>")
def show_invoice(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, payer_id=caller_id()))
    return {"amount": invoice.amount}


@bp.post("/billing/invoices/<int:invoice_id>/pay")
def pay_invoice(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, payer_id=caller_id()))
    invoice.paid = True
    db.session.commit()
    return "", 204


# endregion
