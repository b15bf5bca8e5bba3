"""The session adds the tenant to every ORM statement, and refuses what it cannot narrow."""

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
    db.session.remove()
    g.tenant_id = tenant_id


@bp.before_app_request
def enter_own_tenant():
    enter_tenant(getattr(current_user, "organization_id", None))


@event.listens_for(db.session, "do_orm_execute")
def only_own_tenant(state):
    tenant_id = g.get("tenant_id")
    # region template
    if state.execution_options.get("tenant_bound"):
        return
    if state.is_from_statement or state.is_executemany or not state.is_orm_statement:
        raise PermissionError("not scoped")
    own = with_loader_criteria(Shipment, lambda cls: cls.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)
    # endregion


def report(sql):
    if ":tenant_id" not in sql:
        raise PermissionError("the report names no tenant")
    tenant_bound = {"tenant_bound": True}
    return db.session.execute(db.text(sql), {"tenant_id": g.tenant_id}, execution_options=tenant_bound).all()


@bp.get("/shipments")
@login_required
def list_shipments():
    return jsonify([shipment.id for shipment in db.session.scalars(db.select(Shipment))])


@bp.get("/shipments/states")
@login_required
def count_states():
    states = report("SELECT state, count(*) FROM shipment WHERE organization_id = :tenant_id GROUP BY state")
    return jsonify([list(row) for row in states])


@bp.post("/shipments/close")
@login_required
def close_delivered():
    db.session.execute(db.update(Shipment).filter_by(state="delivered").values(state="closed"))
    db.session.commit()
    return "", 204


# endregion
