"""Files for download, made by the worker."""

import csv
import io

from sqlalchemy import select

from worklane.extensions import db
from worklane.models import AuditEntry, Export, Invoice, Membership
from worklane.queue import job


@job
def make_export(export_id):
    export = db.session.get(Export, export_id)
    export.content = MAKERS[export.kind](export.organization_id)
    export.status = "ready"


def _members(organization_id):
    rows = db.session.scalars(select(Membership).filter_by(organization_id=organization_id).order_by(Membership.id))
    return to_csv(
        ["name", "email", "role", "hourly_rate"],
        [[row.user.name, row.user.email, row.role, row.hourly_rate] for row in rows],
    )


def _invoices(organization_id):
    rows = db.session.scalars(select(Invoice).filter_by(organization_id=organization_id).order_by(Invoice.id))
    return to_csv(
        ["number", "customer", "issued_on", "status", "total"],
        [[row.number, row.customer, row.issued_on, row.status, row.total] for row in rows],
    )


def _audit(organization_id):
    rows = db.session.scalars(select(AuditEntry).filter_by(organization_id=organization_id).order_by(AuditEntry.id))
    return to_csv(["time", "actor", "action"], [[row.created_at, row.actor_id, row.action] for row in rows])


MAKERS = {"members": _members, "invoices": _invoices, "audit": _audit}


def to_csv(header, rows):
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
