"""Each field of a shipment checks the current user, whatever way led to the shipment."""

from app import Shipment, Topic, query, shipment_type, subscription

from tmkb.authoring.proofs.stage import User, db


# region example
def load_shipment(context, **key):
    user = db.session.get(User, context["user_id"])
    own = db.select(Shipment).filter_by(organization_id=user and user.organization_id)
    return db.session.scalar(own.filter_by(**key))


@query.field("shipment")
def resolve_shipment(_, info, id):
    return load_shipment(info.context, id=id)


@query.field("_entities")
def resolve_entities(_, info, representations):
    keys = [{name: each[name] for name in ("id", "tracking") if name in each} for each in representations]
    return [db.session.scalar(db.select(Shipment).filter_by(**key)) for key in keys]


@subscription.source("shipment")
def watch_shipment(_, info, id):
    if load_shipment(info.context, id=id) is None:
        raise PermissionError("no such shipment")
    return Topic(f"shipment:{id}", "shipment")


@subscription.event("shipment")
def pass_shipment(shipment, context):
    return shipment


@subscription.source("shipments")
def watch_shipments(_, info, organizationId):
    return Topic(f"organization:{organizationId}", "shipments")


@subscription.event("shipments")
def pass_shipments(shipment, context):
    return shipment


def check_user(shipment, info):
    user = db.session.get_one(User, info.context["user_id"])
    if shipment.organization_id != user.organization_id:
        raise PermissionError("no such shipment")


@shipment_type.field("id")
def resolve_id(shipment, info):
    check_user(shipment, info)
    return shipment.id


@shipment_type.field("tracking")
def resolve_tracking(shipment, info):
    check_user(shipment, info)
    return shipment.tracking


@shipment_type.field("address")
def resolve_address(shipment, info):
    check_user(shipment, info)
    return shipment.address


# endregion
