"""A gateway, which knows the signed-in user, and a billing service behind it.

Both run in one process, and each call between them is a request of its own. They share one key here, so the service
could also sign assertions. In production, a key pair prevents that. How the services authenticate to each other is left
out.
"""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, current_app, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    payer_id = mapped_column(db.Integer, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    paid = mapped_column(db.Boolean, nullable=False, default=False)


bp = Blueprint("services", __name__)


@bp.post("/invoices")
@login_required
def create_invoice():
    invoice = Invoice(payer_id=current_user.id, amount=request.get_json()["amount"])
    db.session.add(invoice)
    db.session.commit()
    return {"id": invoice.id}, 201


def call_billing(method, path, headers):
    """Call the billing service over the network."""
    response = current_app.test_client().open(path, method=method, headers=headers)
    return response.get_data(), response.status_code, {"Content-Type": response.content_type}


def event_assertion(user_id, audience="billing", minutes=1, key=None, algorithm="HS256"):
    """Return an assertion about a user, as the gateway signs it or as somebody else would."""
    claims = {"sub": str(user_id)}
    if audience is not None:
        claims["aud"] = audience
    if minutes is not None:
        claims["exp"] = datetime.now(UTC) + timedelta(minutes=minutes)
    return jwt.encode(claims, key or (current_app.config["GATEWAY_KEY"] if algorithm != "none" else None), algorithm)


def state_invoices():
    return [[invoice.payer_id, invoice.paid] for invoice in db.session.scalars(db.select(Invoice).order_by(Invoice.id))]
