"""A row of another organization stops the request that loads it."""

from app import Digest, Invoice, Payment, Pin, TenantOwned, bp
from celery import shared_task
from flask import abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import event
from werkzeug.exceptions import Forbidden

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_app_request
def enter_tenant():
    g.tenant_id = getattr(current_user, "organization_id", None)


@event.listens_for(TenantOwned, "load", propagate=True)
def only_own_tenant(row, context):
    if row.organization_id is None or row.organization_id != g.get("tenant_id"):
        abort(403)


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
        db.session.remove()  # session.get() would return a row that it loaded for the last tenant
        g.tenant_id = organization_id
        try:
            invoice = db.session.get(Invoice, invoice_id)
        except Forbidden:  # a pin of another organization's invoice must not end the job of all organizations
            continue
        if invoice is not None:
            digests.append(Digest(organization_id=organization_id, text=invoice.number))
    db.session.add_all(digests)
    db.session.commit()


# endregion
