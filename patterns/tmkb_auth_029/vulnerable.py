"""A billing service believes the header that says for whom it is called, and the gateway passes it on."""

from flask import Blueprint, abort, current_app, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    payer_id = db.Column(db.Integer, nullable=False)
    amount = db.Column(db.Integer, nullable=False)


def call_billing(path, headers):
    """The call over the network."""
    answer = current_app.test_client().get(path, headers=headers)
    return answer.get_data(), answer.status_code, {"Content-Type": answer.content_type}


# region example
bp = Blueprint("services", __name__)


@bp.get("/api/invoices/<int:invoice_id>")
@login_required
def gateway_invoice(invoice_id):
    headers = {"X-User-Id": str(current_user.id), **request.headers}
    return call_billing(f"/billing/invoices/{invoice_id}", headers)


def caller_id():
    return request.headers.get("X-User-Id", type=int) or abort(401)


@bp.get("/billing/invoices/<int:invoice_id>")
def billing_invoice(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, payer_id=caller_id()))
    return jsonify(amount=invoice.amount)


# endregion
