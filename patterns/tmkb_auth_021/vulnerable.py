"""The session adds the tenant to ORM selects; updates, hand-written SQL and loaded objects pass it by."""

from flask import Blueprint, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


class Shipment(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    state = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)


# region example
bp = Blueprint("shipments", __name__)


def enter_tenant(tenant_id):
    g.tenant_id = tenant_id


@bp.before_app_request
def enter_own_tenant():
    enter_tenant(getattr(current_user, "organization_id", None))


@event.listens_for(db.session, "do_orm_execute")
def only_own_tenant(state):
    tenant_id = g.get("tenant_id")
    if state.is_select:
        own = with_loader_criteria(Shipment, lambda cls: cls.organization_id == tenant_id, include_aliases=True)
        state.statement = state.statement.options(own)


def report(sql):
    return db.session.execute(db.text(sql)).all()


@bp.get("/shipments")
@login_required
def list_shipments():
    return jsonify([shipment.id for shipment in db.session.scalars(db.select(Shipment))])


@bp.get("/shipments/states")
@login_required
def count_states():
    states = report("SELECT state, count(*) FROM shipment GROUP BY state")
    return jsonify([list(row) for row in states])


@bp.post("/shipments/close")
@login_required
def close_delivered():
    db.session.execute(db.update(Shipment).filter_by(state="delivered").values(state="closed"))
    db.session.commit()
    return "", 204


# endregion
