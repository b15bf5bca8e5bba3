"""Invoices of all customers in one table; the session adds the organization to whatever a view asks."""

from flask import Blueprint, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


class TenantOwned:
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)


class Invoice(TenantOwned, db.Model):
    id = db.Column(db.Integer, primary_key=True)
    number = db.Column(db.String, nullable=False)
    amount = db.Column(db.Integer, nullable=False)
    paid = db.Column(db.Boolean, nullable=False, default=False)
    reminded = db.Column(db.Boolean, nullable=False, default=False)


# region example
bp = Blueprint("invoices", __name__)


@bp.before_app_request
def enter_tenant():
    g.tenant_id = getattr(current_user, "organization_id", None)


# region template
@event.listens_for(db.session, "do_orm_execute")
def only_own_tenant(state):
    tenant_id = g.get("tenant_id")  # None matches no row
    own = with_loader_criteria(TenantOwned, lambda cls: cls.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)


# endregion
@bp.get("/invoices")
@login_required
def list_invoices():
    rows = db.session.scalars(db.select(Invoice).filter_by(organization_id=current_user.organization_id))
    return jsonify([invoice.number for invoice in rows])


@bp.get("/invoices/unpaid")
@login_required
def list_unpaid():
    rows = db.session.scalars(db.select(Invoice).filter_by(paid=False))
    return jsonify([invoice.number for invoice in rows])


@bp.get("/invoices/outstanding")
@login_required
def outstanding():
    total = db.session.scalar(db.select(db.func.sum(Invoice.amount)).filter_by(paid=False))
    return jsonify(total or 0)


@bp.post("/invoices/remind")
@login_required
def remind():
    db.session.execute(db.update(Invoice).filter_by(paid=False).values(reminded=True))
    db.session.commit()
    return "", 204


# endregion
