"""The hook refuses SQL text and filters everything else."""

from contextlib import contextmanager

from app import Shipment, TenantOwned, bp
from celery import shared_task
from flask import current_app, g, jsonify
from flask_login import login_required
from sqlalchemy import TextClause, event
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


@event.listens_for(db.session, "do_orm_execute")
def scope(state):
    tenant_id = g.get("tenant_id")
    if isinstance(state.statement, TextClause):
        raise PermissionError
    own = with_loader_criteria(TenantOwned, lambda c: c.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)


def report(sql):
    return db.session.connection().execute(db.text(sql).bindparams(tenant_id=g.tenant_id)).all()


@bp.get("/reports/states")
@login_required
def count_states():
    sql = "SELECT state, count(*) FROM shipment WHERE organization_id = :tenant_id GROUP BY state"
    return jsonify([list(row) for row in report(sql)])


@contextmanager
def tenant(tenant_id):
    """Enter a tenant with a new application context, and so with a session that has loaded nothing."""
    with current_app.app_context():
        g.tenant_id = tenant_id
        yield


@shared_task(name="labels.send")
def send_labels(orders):
    labels = []
    for tenant_id, shipment_id in orders:
        with tenant(tenant_id):
            shipment = db.session.get(Shipment, shipment_id)
            labels.append((tenant_id, shipment and shipment.reference))
    return labels
