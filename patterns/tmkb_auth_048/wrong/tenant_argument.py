"""The tool still accepts the organization from the model."""

import secrets

from app import Invoice, PendingCall, bp, model, run, tool
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@tool
def list_invoices(organization_id=None):
    chosen = organization_id or current_user.organization_id
    return list(db.session.scalars(db.select(Invoice.number).filter_by(organization_id=chosen)))


@tool
def pay_invoice(invoice_id):
    if current_user.role != "admin":
        abort(403)
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, organization_id=current_user.organization_id))
    invoice.payments += 1
    db.session.commit()
    return "paid"


@bp.post("/chat")
@login_required
def chat():
    call = model(f"{current_user.name} writes: {request.json['message']}")
    if call["name"] != "list_invoices":
        pending = PendingCall(id=secrets.token_urlsafe(), user_id=current_user.id, call=call)
        db.session.add(pending)
        db.session.commit()
        return {"confirm": pending.id, "call": call}, 202
    return run(call)


@bp.post("/calls/<call_id>/confirm")
@login_required
def confirm(call_id):
    mine = db.delete(PendingCall).filter_by(id=call_id, user_id=current_user.id)
    call = db.session.scalar(mine.returning(PendingCall.call))
    if call is None:
        abort(404)
    db.session.commit()
    return run(call)
