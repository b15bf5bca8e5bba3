"""Shipments of organizations, with the reports and bulk changes that handlers run through the session.

A version of the code filters the statements of the session by tenant.
"""

from celery import current_app as celery
from flask import Blueprint, g, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased, mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db


class TenantOwned:
    """Rows of one organization."""

    organization_id = mapped_column(db.ForeignKey("organization.id"), nullable=False)


class Shipment(TenantOwned, db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    reference = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String, nullable=False, default="delivered")

    parcels = relationship("Parcel")


class Parcel(TenantOwned, db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    weight = mapped_column(db.Integer, nullable=False, default=12)
    shipment_id = mapped_column(db.ForeignKey("shipment.id"), nullable=False)


bp = Blueprint("shipments", __name__)
shipments = Shipment.__table__


@bp.before_app_request
def enter_tenant():
    g.tenant_id = getattr(current_user, "organization_id", None)


@bp.app_errorhandler(PermissionError)
def refuse(error):
    return "forbidden", 403


@bp.app_errorhandler(IntegrityError)
def conflict(error):
    db.session.rollback()
    return "conflict", 409


def listed(statement):
    return jsonify([list(row) for row in db.session.execute(statement)])


@bp.get("/shipments")
@login_required
def list_shipments():
    return listed(db.select(Shipment.reference, Shipment.state))


@bp.get("/shipments/<int:shipment_id>")
@login_required
def show_shipment(shipment_id):
    shipment = db.get_or_404(Shipment, shipment_id)
    return {"reference": shipment.reference, "weights": [parcel.weight for parcel in shipment.parcels]}


@bp.post("/shipments/close")
@login_required
def close_shipments():
    db.session.execute(db.update(Shipment).filter_by(state=request.args["state"]).values(state="closed"))
    db.session.commit()
    return "", 204


@bp.delete("/shipments")
@login_required
def delete_shipments():
    db.session.execute(db.delete(Shipment).filter_by(state=request.args["state"]))
    db.session.commit()
    return "", 204


@bp.put("/shipments")
@login_required
def save_states():
    db.session.execute(db.update(Shipment), [{"id": row["id"], "state": row["state"]} for row in request.get_json()])
    db.session.commit()
    return "", 204


@bp.post("/shipments/<int:shipment_id>/organization")
@login_required
def assign(shipment_id):
    statement = db.update(Shipment).filter_by(id=shipment_id)
    db.session.execute(statement.values(organization_id=request.get_json()["organization_id"]))
    db.session.commit()
    return "", 204


@bp.post("/parcels/<int:parcel_id>/organization")
@login_required
def assign_parcel(parcel_id):
    statement = db.update(Parcel).filter_by(id=parcel_id)
    db.session.execute(statement.values(organization_id=request.get_json()["organization_id"]))
    db.session.commit()
    return "", 204


@bp.put("/shipments/<int:shipment_id>")
@login_required
def replace(shipment_id):
    db.session.merge(Shipment(id=shipment_id, organization_id=g.tenant_id, reference="replaced"))
    db.session.commit()
    return "", 204


@bp.post("/shipments/copies")
@login_required
def copy_shipments():
    rows = db.select(Shipment.reference, Shipment.state, db.literal(g.tenant_id))
    db.session.execute(db.insert(Shipment).from_select(["reference", "state", "organization_id"], rows))
    db.session.commit()
    return "", 204


@bp.get("/reports/table")
@login_required
def report_of_table():
    return listed(db.select(shipments.c.reference))


@bp.get("/reports/senders")
@login_required
def report_with_users():
    return listed(db.select(User.name, shipments.c.reference))


@bp.get("/reports/last")
@login_required
def report_with_subquery():
    return listed(db.select(User.name, db.select(db.func.max(shipments.c.reference)).scalar_subquery()))


@bp.get("/reports/ids")
@login_required
def report_of_ids():
    return listed(db.select(User.name, shipments.c.id))


@bp.get("/reports/newest")
@login_required
def report_with_subquery_on_own_table():
    return listed(db.select(Shipment.id, db.select(db.func.max(shipments.c.reference)).scalar_subquery()))


@bp.get("/reports/keys")
@login_required
def report_with_keys_of_subquery():
    return listed(db.select(Shipment.id, db.select(db.func.max(shipments.c.id)).scalar_subquery()))


@bp.get("/reports/aliased")
@login_required
def report_of_aliased_model():
    return listed(db.select(aliased(Shipment).id, shipments.c.id))


@bp.get("/reports/total")
@login_required
def report_of_total():
    return listed(db.select(db.func.count()).select_from(Shipment).where(Shipment.parcels.any()))


@bp.get("/reports/untyped")
@login_required
def report_of_untyped_table():
    return listed(db.select(User.name, db.table("shipment", db.column("reference")).c.reference))


@bp.get("/reports/literal")
@login_required
def report_of_literal_column():
    return listed(db.select(User.name, db.literal_column("reference")).join(shipments, db.true()))


@bp.get("/reports/alias")
@login_required
def report_with_alias():
    return listed(db.select(User.name, shipments.alias().c.reference))


@bp.get("/reports/union")
@login_required
def report_union():
    return listed(db.select(Shipment.reference).union_all(db.select(Shipment.state)))


@bp.get("/reports/objects")
@login_required
def report_into_objects():
    found = db.session.scalars(db.select(Shipment).from_statement(db.text("SELECT * FROM shipment")))
    return jsonify([shipment.reference for shipment in found])


@bp.get("/reports/open")
@login_required
def report_with_condition():
    return listed(db.select(Shipment.reference).where(db.text("state = 'delivered' OR state = 'lost'")))


@bp.patch("/me")
@login_required
def set_own_role():
    current_user.role = request.get_json()["role"]
    db.session.commit()
    return "", 204


def event_print_labels(orders):
    celery.send_task("labels.send", [orders])


def state_shipments():
    with db.engine.connect() as connection:
        rows = connection.execute(db.select(shipments.c["reference", "state", "organization_id"]).order_by("id"))
        return [list(row) for row in rows]


def state_parcels():
    with db.engine.connect() as connection:
        return [list(row) for row in connection.execute(db.select(Parcel.__table__).order_by("id"))]


def state_roles():
    return list(db.session.scalars(db.select(User.role).order_by(User.id)))


def event_store(reference, organization_id, state="delivered"):
    rows = {"reference": reference, "state": state, "organization_id": organization_id}
    with db.engine.begin() as connection:
        shipment_id = connection.execute(shipments.insert().values(rows)).inserted_primary_key.id
        connection.execute(Parcel.__table__.insert().values(shipment_id=shipment_id, organization_id=organization_id))
