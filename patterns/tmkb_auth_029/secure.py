"""A billing service reads for whom it is called from an assertion that the gateway signed for it and for now."""

from datetime import UTC, datetime, timedelta

import jwt
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
    claims = {"sub": str(current_user.id), "aud": "billing", "exp": datetime.now(UTC) + timedelta(minutes=1)}
    headers = {"Authorization": "Bearer " + jwt.encode(claims, current_app.config["GATEWAY_KEY"], "HS256")}
    return call_billing(f"/billing/invoices/{invoice_id}", headers)


# region template
def caller_id():
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    key, required = current_app.config["GATEWAY_KEY"], {"require": ["sub", "exp"]}
    try:
        return int(jwt.decode(token, key, ["HS256"], required, audience="billing")["sub"])
    except jwt.InvalidTokenError:
        abort(401)


# endregion


@bp.get("/billing/invoices/<int:invoice_id>")
def billing_invoice(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, payer_id=caller_id()))
    return jsonify(amount=invoice.amount)


# endregion
