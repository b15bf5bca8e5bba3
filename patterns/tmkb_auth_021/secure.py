"""The session filters every ORM statement by tenant, and refuses what it cannot filter."""

from contextlib import contextmanager

from app import Shipment, TenantOwned, bp
from celery import shared_task
from flask import current_app, g, jsonify
from flask_login import login_required
from sqlalchemy import ColumnClause, Select, TextClause, event
from sqlalchemy.orm import with_loader_criteria
from sqlalchemy.sql.annotation import Annotated
from sqlalchemy.sql.selectable import AliasedReturnsRows
from sqlalchemy.sql.visitors import iterate

from tmkb.authoring.proofs.stage import db


# region example
# region template
@event.listens_for(db.session, "do_orm_execute")
def scope(state):
    tenant_id = g.get("tenant_id")
    if not state.is_orm_statement or state.is_executemany:
        raise PermissionError
    own = with_loader_criteria(TenantOwned, lambda c: c.organization_id == tenant_id, include_aliases=True)
    state.statement = state.statement.options(own)


# endregion


CONSTANTS = {"*", "1"}  # of count() and exists()


@event.listens_for(db.session, "do_orm_execute")
def refuse_core(state):
    """Refuse inserts, and SQL text and Core columns inside ORM statements, because the filter covers only models."""
    if state.is_insert:
        raise PermissionError("not filtered")
    parts = [] if state.is_relationship_load else list(iterate(state.statement))
    plain = not any(isinstance(part, Select | AliasedReturnsRows) for part in parts[1:])
    models = {mapper.local_table for mapper in state.all_mappers}
    for part in parts:
        core = isinstance(part, ColumnClause) and not (isinstance(part, Annotated) or part.name in CONSTANTS)
        if core and plain and part.table in models:  # session.get() uses it
            continue
        if core or isinstance(part, TextClause):
            raise PermissionError("not filtered")


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


for model in TenantOwned.__subclasses__():
    event.listen(
        model.__table__,
        "after_create",
        db.DDL(
            "CREATE TRIGGER %(table)s_organization BEFORE UPDATE OF organization_id ON %(table)s "
            "BEGIN SELECT RAISE(ABORT, 'a row stays in its organization'); END"
        ),
    )


# endregion
