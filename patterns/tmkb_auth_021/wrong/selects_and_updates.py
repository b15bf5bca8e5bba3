"""The filter covers updates and deletes, too, and everything that it does not cover still runs."""

from app import Shipment, TenantOwned, bp
from celery import shared_task
from flask import g, jsonify
from flask_login import login_required
from sqlalchemy import event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


@event.listens_for(db.session, "do_orm_execute")
def scope(state):
    tenant_id = g.get("tenant_id")
    own = with_loader_criteria(TenantOwned, lambda c: c.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)


def report(sql):
    return db.session.execute(db.text(sql)).all()


@bp.get("/reports/states")
@login_required
def count_states():
    return jsonify([list(row) for row in report("SELECT state, count(*) FROM shipment GROUP BY state")])


@shared_task(name="labels.send")
def send_labels(orders):
    labels = []
    for tenant_id, shipment_id in orders:
        g.tenant_id = tenant_id
        shipment = db.session.get(Shipment, shipment_id)
        labels.append((tenant_id, shipment and shipment.reference))
    return labels
