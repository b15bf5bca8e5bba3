"""Invoices of all organizations in one table. No query here has a condition on the organization."""

from celery import current_app
from flask import Blueprint, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy.orm import aliased, mapped_column, relationship

from tmkb.authoring.proofs.stage import db


class TenantOwned:
    organization_id = mapped_column(db.ForeignKey("organization.id"))  # null: the organization was deleted


class Invoice(TenantOwned, db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    number = mapped_column(db.String)
    amount = mapped_column(db.Integer)
    paid = mapped_column(db.Boolean, default=False)
    reminded = mapped_column(db.Boolean, default=False)


class Payment(TenantOwned, db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    iban = mapped_column(db.String)
    memo = mapped_column(db.String)
    invoice_id = mapped_column(db.ForeignKey(Invoice.id))
    invoice = relationship(Invoice)


class Pin(db.Model):
    """The invoice that the daily digest of an organization shows."""

    organization_id = mapped_column(db.ForeignKey("organization.id"), primary_key=True)
    invoice_id = mapped_column(db.Integer)


class Digest(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.ForeignKey("organization.id"))
    text = mapped_column(db.String)


bp = Blueprint("invoices", __name__)


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show_invoice(invoice_id):
    return {"number": db.get_or_404(Invoice, invoice_id).number}


@bp.get("/invoices/outstanding")
@login_required
def outstanding():
    total = db.session.scalar(db.select(db.func.sum(Invoice.amount)).filter_by(paid=False))
    return {"total": total or 0}


@bp.get("/invoices/largest")
@login_required
def largest():
    larger = aliased(Invoice)
    rows = db.select(larger.number).where(larger.amount >= db.select(db.func.max(Invoice.amount)).scalar_subquery())
    return jsonify(db.session.scalars(rows).all())


@bp.delete("/invoices/<int:invoice_id>")
@login_required
def delete_invoice(invoice_id):
    db.session.execute(db.delete(Invoice).filter_by(id=invoice_id))
    db.session.commit()
    return "", 204


@bp.get("/payments")
@login_required
def list_payments():
    return jsonify([[payment.iban, payment.memo] for payment in db.session.scalars(db.select(Payment))])


@bp.post("/payments")
@login_required
def create_payment():
    payment = Payment(invoice_id=request.get_json()["invoice_id"], organization_id=current_user.organization_id)
    db.session.add(payment)
    db.session.commit()
    return {"id": payment.id}, 201


@bp.get("/payments/<int:payment_id>")
@login_required
def show_payment(payment_id):
    invoice = db.get_or_404(Payment, payment_id).invoice
    return {"invoice": invoice and invoice.number}


@bp.put("/pin")
@login_required
def pin_invoice():
    db.session.merge(Pin(organization_id=current_user.organization_id, invoice_id=request.get_json()["invoice_id"]))
    db.session.commit()
    return "", 204


@bp.get("/digests")
@login_required
def list_digests():
    digests = db.select(Digest.text).filter_by(organization_id=current_user.organization_id)
    return jsonify(db.session.scalars(digests).all())


def event_bill(number, organization_id):
    """Add an invoice and a payment."""
    invoice = Invoice(number=number, amount=4200, organization_id=organization_id)
    db.session.add_all([invoice, Payment(iban=f"IBAN of {number}", organization_id=organization_id)])
    db.session.flush()
    return invoice.id


def event_write_digests():
    """Enqueue the job that writes the digest of each organization."""
    current_app.send_task("example.write_digests")


def state_invoices():
    return list(map(str, db.session.execute(db.text("SELECT number, paid, reminded FROM invoice ORDER BY id"))))
