"""Invoices under random ids; nobody counts through them, and still nobody asks who opens them."""

from uuid import uuid4

from flask import Blueprint, request, url_for
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    public_id = db.Column(db.Uuid, nullable=False, unique=True, default=uuid4)
    total = db.Column(db.Integer, nullable=False)
    state = db.Column(db.String, nullable=False, default="open")
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("invoices", __name__)


@bp.post("/invoices")
@login_required
def create_invoice():
    invoice = Invoice(total=request.get_json()["total"], organization_id=current_user.organization_id)
    db.session.add(invoice)
    db.session.commit()
    return {"url": url_for(".show_invoice", public_id=invoice.public_id)}, 201


@bp.get("/invoices/<uuid:public_id>")
@login_required
def show_invoice(public_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(public_id=public_id))
    return {"total": invoice.total, "state": invoice.state}


@bp.post("/invoices/<uuid:public_id>/cancel")
@login_required
def cancel_invoice(public_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(public_id=public_id))
    invoice.state = "cancelled"
    db.session.commit()
    return "", 204


# endregion
