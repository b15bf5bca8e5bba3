"""Node and edge are checked, but the mutation is not."""

from app import Invoice, may_read, mutation, organization_type, query

from tmkb.authoring.proofs.stage import db


def load_invoice(user, id):
    invoice = id.isdecimal() and len(id) < 10 and db.session.get(Invoice, int(id))
    if not invoice or not may_read(user, invoice.organization_id):
        raise PermissionError("no such invoice")
    return invoice


@query.field("node")
def resolve_node(_, info, id):
    return load_invoice(info.context, id)


@organization_type.field("invoices")
def resolve_edge(organization, info):
    if not may_read(info.context, organization.id):
        raise PermissionError("no such invoice")
    return db.session.scalars(db.select(Invoice).filter_by(organization_id=organization.id)).all()


@mutation.field("flag")
def resolve_flag(_, info, id):
    invoice = db.session.get(Invoice, id)
    invoice.flagged = True
    db.session.commit()
    return {"ok": True, "invoice": lambda info: load_invoice(info.context, id)}
