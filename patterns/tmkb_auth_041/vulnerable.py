"""The query for invoices is guarded, but a node id, an edge and a mutation reach them without a check."""

from app import Invoice, mutation, organization_type, query

from tmkb.authoring.proofs.stage import db


# region example
@query.field("node")
def resolve_node(_, info, id):
    return db.session.get(Invoice, id)


@organization_type.field("invoices")
def resolve_edge(organization, info):
    return db.session.scalars(db.select(Invoice).filter_by(organization_id=organization.id)).all()


@mutation.field("flag")
def resolve_flag(_, info, id):
    invoice = db.session.get(Invoice, id)
    invoice.flagged = True
    db.session.commit()
    return {"ok": True, "invoice": invoice}


# endregion
