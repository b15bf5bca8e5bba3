"""The view from the bug report has its condition; the other queries have none."""

from app import Digest, Invoice, Payment, Pin, bp
from celery import shared_task
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.get("/invoices/unpaid")
@login_required
def list_unpaid():
    rows = db.session.scalars(db.select(Invoice).filter_by(paid=False, organization_id=current_user.organization_id))
    return jsonify([invoice.number for invoice in rows])


@bp.post("/invoices/remind")
@login_required
def remind():
    db.session.execute(db.update(Invoice).filter_by(paid=False).values(reminded=True))
    db.session.commit()
    return "", 204


@bp.post("/payments/memo")
@login_required
def copy_numbers():
    number = db.select(Invoice.number).where(Invoice.id == Payment.invoice_id).scalar_subquery()
    db.session.execute(db.update(Payment).values(memo=number))
    db.session.commit()
    return "", 204


@shared_task
def write_digests():
    digests = []
    for organization_id, invoice_id in db.session.execute(db.select(Pin.organization_id, Pin.invoice_id)).all():
        invoice = db.session.get(Invoice, invoice_id)
        if invoice is not None:
            digests.append(Digest(organization_id=organization_id, text=invoice.number))
    db.session.add_all(digests)
    db.session.commit()
