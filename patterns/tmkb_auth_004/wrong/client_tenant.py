"""The client names the tenant in a header."""

from app import Digest, Invoice, Payment, Pin, TenantOwned, bp
from celery import shared_task
from flask import g, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy import event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


@bp.before_app_request
def enter_tenant():
    g.tenant_id = request.headers.get("X-Organization", getattr(current_user, "organization_id", None))


@event.listens_for(db.session, "do_orm_execute")
def only_own_tenant(state):
    tenant_id = g.get("tenant_id")
    own = with_loader_criteria(TenantOwned, lambda cls: cls.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)


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
    number = db.select(Invoice.number).where(Invoice.id == Payment.invoice_id).scalar_subquery()
    db.session.execute(db.update(Payment).values(memo=number))
    db.session.commit()
    return "", 204


@shared_task
def write_digests():
    digests = []
    for organization_id, invoice_id in db.session.execute(db.select(Pin.organization_id, Pin.invoice_id)).all():
        db.session.remove()  # session.get() would return a row that it loaded for the last tenant
        g.tenant_id = organization_id
        invoice = db.session.get(Invoice, invoice_id)
        if invoice is not None:
            digests.append(Digest(organization_id=organization_id, text=invoice.number))
    db.session.add_all(digests)
    db.session.commit()
