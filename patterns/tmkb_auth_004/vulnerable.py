"""Each query needs its own condition on the organization, and some do not have one."""

from app import Digest, Invoice, Payment, Pin, bp
from celery import shared_task
from flask import jsonify
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.get("/invoices/unpaid")
@login_required
def list_unpaid():
    rows = db.session.scalars(db.select(Invoice).filter_by(paid=False))
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
    db.session.execute(db.update(Payment).where(Payment.invoice_id == Invoice.id).values(memo=Invoice.number))
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


# endregion
