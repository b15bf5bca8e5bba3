"""The loaders decide, so every way to an invoice, be it query, node, edge or mutation, passes the same check."""

from graphql import build_schema

from tmkb.authoring.proofs.stage import Organization, db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    total = db.Column(db.Integer, nullable=False)
    flagged = db.Column(db.Boolean, nullable=False, default=False)


schema = build_schema("""
    type Invoice { id: ID! total: Int! }
    type Organization { name: String! invoices: [Invoice!] }
    type User { name: String! organization: Organization! }
    type Flagged { ok: Boolean! invoice: Invoice }
    type Query { me: User! invoices: [Invoice!] node(id: ID!): Invoice }
    type Mutation { flag(id: ID!): Flagged! }
""")


# region example
def may_read(user, organization_id):
    return user.role == "admin" and organization_id == user.organization_id


# region template
def load_invoice(user, id):
    invoice = db.session.get(Invoice, id)
    if invoice is None or not may_read(user, invoice.organization_id):
        raise PermissionError("no such invoice")
    return invoice


def load_invoices(user, organization_id):
    if not may_read(user, organization_id):
        raise PermissionError("no such invoice")
    # endregion
    return db.session.scalars(db.select(Invoice).filter_by(organization_id=organization_id)).all()


class OrganizationNode:
    def __init__(self, organization):
        self.id, self.name = organization.id, organization.name

    def invoices(self, info):
        return load_invoices(info.context, self.id)


def me(info):
    organization = db.session.get(Organization, info.context.organization_id)
    return {"name": info.context.name, "organization": OrganizationNode(organization)}


def invoices(info):
    if not may_read(info.context, info.context.organization_id):
        raise PermissionError("no such invoice")
    return load_invoices(info.context, info.context.organization_id)


def node(info, id):
    return load_invoice(info.context, int(id))


def flag(info, id):
    own = db.select(Invoice).filter_by(organization_id=info.context.organization_id)
    invoice = db.session.scalar(own.filter_by(id=int(id)))
    if invoice is None:
        raise PermissionError("no such invoice")
    invoice.flagged = True
    db.session.commit()
    return {"ok": True, "invoice": lambda info: load_invoice(info.context, int(id))}


# endregion
