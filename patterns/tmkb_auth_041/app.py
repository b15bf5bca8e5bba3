"""Invoices of organizations behind a GraphQL API. A version of the code resolves the ways to an invoice.

The administrators of an organization read and flag its invoices. Resolvers are registered as with Ariadne, by a stub of
a few lines over graphql-core. The signed-in user is `info.context`.
"""

from flask import Blueprint, request
from flask_login import current_user, login_required
from graphql import build_schema, graphql_sync
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, db


class Number(db.TypeDecorator):
    """An integer of PostgreSQL: other text and larger numbers are errors, also on SQLite."""

    impl = db.Integer
    cache_ok = True

    def process_bind_param(self, value, dialect):
        if value is not None and int(value) >= 2**31:
            raise OverflowError("integer out of range")
        return value


class Invoice(db.Model):
    id = mapped_column(Number, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    total = mapped_column(db.Integer)
    flagged = mapped_column(db.Boolean, default=False)


schema = build_schema("""
    type Invoice { id: ID! total: Int! }
    type Organization { name: String! invoices: [Invoice!] }
    type User { name: String! organization: Organization! }
    type Flagged { ok: Boolean! invoice: Invoice }
    type Query { me: User! invoices: [Invoice!] node(id: ID!): Invoice }
    type Mutation { flag(id: ID!): Flagged }
""")


class ObjectType:
    def __init__(self, name):
        self.name = name

    def field(self, name):
        """Register a resolver, which is called with the parent object, the info and the arguments."""

        def register(resolver):
            schema.type_map[self.name].fields[name].resolve = resolver
            return resolver

        return register


bp = Blueprint("graphql", __name__)
query, mutation, user_type, organization_type = map(ObjectType, ("Query", "Mutation", "User", "Organization"))


@bp.post("/graphql")
@login_required
def graphql():
    body = request.get_json()
    result = graphql_sync(
        schema, body["query"], context_value=current_user._get_current_object(), variable_values=body.get("variables")
    )
    for error in result.errors or ():
        if error.original_error and not isinstance(error.original_error, PermissionError):
            error.message = "internal error"  # messages of the database contain SQL
    return result.formatted


def may_read(user, organization_id):
    """Return whether ``user`` may read the invoices of the organization."""
    return user.role == "admin" and organization_id == user.organization_id


@query.field("me")
def resolve_me(_, info):
    return info.context


@user_type.field("organization")
def resolve_organization(user, info):
    return db.session.get(Organization, user.organization_id)


@query.field("invoices")
def resolve_invoices(_, info):
    if not may_read(info.context, info.context.organization_id):
        raise PermissionError("no such invoice")
    return db.session.scalars(db.select(Invoice).filter_by(organization_id=info.context.organization_id)).all()


def event_invoices():
    """Acme has invoice 1 and Globex invoice 2."""
    db.session.add_all([Invoice(id=1, organization_id=1, total=7341), Invoice(id=2, organization_id=2, total=9982)])


def event_move_invoice(invoice_id, organization_id):
    db.session.get(Invoice, invoice_id).organization_id = organization_id


def state_flags():
    return [[invoice.id, invoice.flagged] for invoice in db.session.scalars(db.select(Invoice).order_by(Invoice.id))]
