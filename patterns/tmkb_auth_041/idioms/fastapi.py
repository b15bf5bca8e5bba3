"""Invoices of organizations behind a GraphQL API, whose resolvers share one loader. Admins read and flag them."""

from typing import Any

from fastapi import APIRouter
from graphql import build_schema, graphql_sync
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, Organization, User


class Invoice(Base):
    __tablename__ = "invoices"
    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int]
    total: Mapped[int]
    flagged: Mapped[bool] = mapped_column(default=False)


schema = build_schema("""
    type Invoice { id: ID! total: Int! }
    type Organization { name: String! invoices: [Invoice!] }
    type User { name: String! organization: Organization! }
    type Flagged { ok: Boolean! invoice: Invoice }
    type Query { me: User! invoices: [Invoice!] node(id: ID!): Invoice }
    type Mutation { flag(id: ID!): Flagged }
""")


def resolver(type_name: str, field: str):
    def register(resolve):
        schema.type_map[type_name].fields[field].resolve = resolve
        return resolve

    return register


def may_read(user: User, organization_id: int | None) -> bool:
    return user.role == "admin" and organization_id == user.organization_id


# region idiom
def load_invoice(info, id: str) -> Invoice:  # mutations add the rule of writers
    user, db = info.context["user"], info.context["db"]
    invoice = db.get(Invoice, int(id)) if id.isdecimal() and len(id) < 10 else None
    if invoice is None or not may_read(user, invoice.organization_id):
        raise PermissionError("no such invoice")
    return invoice


# endregion


def invoices_of(info, organization_id: int | None):
    if not may_read(info.context["user"], organization_id):
        raise PermissionError("no such invoice")
    return info.context["db"].scalars(select(Invoice).where(Invoice.organization_id == organization_id)).all()


@resolver("Query", "me")
def resolve_me(_, info):
    return info.context["user"]


@resolver("User", "organization")
def resolve_organization(user, info):
    return info.context["db"].get(Organization, user.organization_id)


@resolver("Query", "invoices")
def resolve_invoices(_, info):
    return invoices_of(info, info.context["user"].organization_id)


@resolver("Organization", "invoices")
def resolve_edge(organization, info):
    return invoices_of(info, organization.id)


@resolver("Query", "node")
def resolve_node(_, info, id):
    return load_invoice(info, id)


@resolver("Mutation", "flag")
def resolve_flag(_, info, id):
    invoice = load_invoice(info, id)
    invoice.flagged = True
    info.context["db"].commit()
    return {"ok": True, "invoice": invoice}


router = APIRouter()


class Operation(BaseModel):
    query: str
    variables: dict[str, Any] | None = None


@router.post("/graphql")
def graphql(operation: Operation, user: CurrentUser, db: Db):
    context = {"user": user, "db": db}
    result = graphql_sync(schema, operation.query, context_value=context, variable_values=operation.variables)
    for error in result.errors or ():
        if error.original_error and not isinstance(error.original_error, PermissionError):
            error.message = "internal error"  # messages of the database contain SQL
    return result.formatted


def event_invoices(db):
    db.add_all([Invoice(id=1, organization_id=1, total=7341), Invoice(id=2, organization_id=2, total=9982)])


def event_move_invoice(db, invoice_id, organization_id):
    db.get_one(Invoice, invoice_id).organization_id = organization_id


def state_flags(db):
    return [[invoice.id, invoice.flagged] for invoice in db.scalars(select(Invoice).order_by(Invoice.id))]
