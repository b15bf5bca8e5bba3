"""Shipments of organizations in a subgraph of a federated GraphQL API. A version of the code resolves them.

The router forwards the user's session, and anyone with a session can also send requests to the subgraph. Resolvers are
registered as with Ariadne, by a stub of a few lines over graphql-core. A POST opens a subscription and a GET reads what
it has received, as over a socket. The context of a subscription is that of its start, and events reach it by topic.
"""

import asyncio
from inspect import isawaitable
from uuid import uuid4

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from graphql import ExecutionResult, build_schema, execute_sync, graphql_sync, parse, subscribe, validate
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Shipment(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    tracking = mapped_column(db.String, nullable=False, unique=True)
    address = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


schema = build_schema("""
    scalar _Any
    type Shipment { id: ID! tracking: String! address: String! }
    union _Entity = Shipment
    type Query { shipment(id: ID!): Shipment _entities(representations: [_Any!]!): [_Entity]! }
    type Subscription { shipment(id: ID!): Shipment shipments(organizationId: ID!): Shipment }
""")
schema.type_map["_Entity"].resolve_type = lambda *_: "Shipment"


class ObjectType:
    def __init__(self, name):
        self.fields = schema.type_map[name].fields
        self.events = {}

    def field(self, name):
        """Register a resolver, which is called with the parent object, the info and the arguments."""

        def register(resolver):
            self.fields[name].resolve = resolver
            return resolver

        return register

    def source(self, name):
        """Register the start of a subscription, which is called like a resolver and returns a topic."""

        def register(source):
            self.fields[name].subscribe = lambda _, info, **args: info.context.setdefault(
                "topic", source(_, info, **args)
            )
            self.fields[name].resolve = lambda shipment, *_, **__: shipment
            return source

        return register

    def event(self, name):
        """Register what is called with each shipment of the topic and the context, and returns None to skip it."""

        def register(handler):
            self.events[name] = handler
            return handler

        return register


class Topic:
    """A stream of events, which only `publish` reads."""

    def __init__(self, name, event):
        self.name, self.event = name, event

    def __aiter__(self):
        return self


bp = Blueprint("shipping", __name__)
query, subscription, shipment_type = map(ObjectType, ("Query", "Subscription", "Shipment"))
sockets = {}


def context():
    return {"user_id": current_user.id, "organization_id": current_user.organization_id}


def formatted(result):
    for error in result.errors or ():
        if error.original_error and not isinstance(error.original_error, PermissionError):
            error.message = "internal error"  # messages of the database contain SQL
    return result.formatted


@bp.post("/shipping/graphql")
@login_required
def graphql():
    body = request.get_json()
    return formatted(
        graphql_sync(schema, body["query"], context_value=context(), variable_values=body.get("variables"))
    )


@bp.post("/shipping/subscriptions")
@login_required
def open_subscription():
    body = request.get_json()
    document, variables, began = parse(body["query"]), body.get("variables"), context()
    if validate(schema, document):
        abort(400)
    result = subscribe(schema, document, context_value=began, variable_values=variables)
    if isawaitable(result):  # graphql-core 3.2
        result = asyncio.run(result)
    socket = {"user_id": current_user.id, "document": document, "variables": variables, "context": began}
    failed = isinstance(result, ExecutionResult)
    socket |= {"topic": None if failed else began["topic"], "received": [formatted(result)] if failed else []}
    sockets[id := str(uuid4())] = socket
    return {"id": id}, 201


@bp.get("/shipping/subscriptions/<id>")
@login_required
def read_subscription(id):
    if id not in sockets or sockets[id]["user_id"] != current_user.id:
        abort(404)
    return sockets[id]["received"]


def publish(shipment):
    topics = f"shipment:{shipment.id}", f"organization:{shipment.organization_id}"
    for socket in sockets.values():
        if socket["topic"] is None or socket["topic"].name not in topics:
            continue
        passed = subscription.events[socket["topic"].event](shipment, socket["context"])
        if passed is not None:
            result = execute_sync(
                schema, socket["document"], passed, socket["context"], variable_values=socket["variables"]
            )
            socket["received"].append(formatted(result))


@bp.put("/shipments/<int:id>")
@login_required
def change_address(id):
    own = db.select(Shipment).filter_by(organization_id=current_user.organization_id)
    shipment = db.first_or_404(own.filter_by(id=id))
    shipment.address = request.get_json()["address"]
    db.session.commit()
    publish(shipment)
    return "", 204


def event_shipments():
    """Acme has shipment 1, Globex shipment 2."""
    db.session.add_all(
        [
            Shipment(id=1, tracking="AC-100", address="Vault Lane 4470", organization_id=1),
            Shipment(id=2, tracking="GL-200", address="Globex Quay", organization_id=2),
        ]
    )


def event_transfer(id, organization_id):
    db.session.get(Shipment, id).organization_id = organization_id
