"""The assertion proves that the gateway is calling, and the header says for whom."""

from datetime import UTC, datetime, timedelta

import jwt
from app import Invoice, bp, call_billing
from flask import abort, current_app, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.get("/api/invoices/<int:invoice_id>")
@bp.post("/api/invoices/<int:invoice_id>/pay")
@login_required
def forward(invoice_id):
    claims = {"sub": str(current_user.id), "aud": "billing", "exp": datetime.now(UTC) + timedelta(minutes=1)}
    headers = {"Authorization": "Bearer " + jwt.encode(claims, current_app.config["GATEWAY_KEY"], "HS256")}
    return call_billing(request.method, "/billing" + request.path.removeprefix("/api"), headers)


def caller_id():
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    key, options = current_app.config["GATEWAY_KEY"], {"require": ["sub", "exp"]}
    try:
        claims = jwt.decode(token, key, ["HS256"], options, audience="billing")
    except (jwt.InvalidTokenError, ValueError):
        abort(401)
    return request.headers.get("X-User-Id", claims["sub"], type=int)


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
