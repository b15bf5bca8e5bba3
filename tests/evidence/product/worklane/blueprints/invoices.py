from datetime import date

from flask import Blueprint, Response, abort, g, jsonify
from flask_login import login_required
from sqlalchemy import func, select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Invoice, InvoiceLine, Project
from worklane.requests import body, page
from worklane.services import audit, webhooks

blueprint = Blueprint("invoices", __name__, url_prefix="/invoices")


@blueprint.get("")
@login_required
def index():
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    query = select(Invoice).filter_by(organization_id=g.organization.id).order_by(Invoice.id.desc())
    return jsonify([serializers.invoice(each) for each in db.session.scalars(page(query))])


@blueprint.post("")
@login_required
def create():
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    data = body("customer", "lines")
    if data.get("project_id") is not None:
        project = db.session.get(Project, data["project_id"])
        if project is None or project.organization_id != g.organization.id:
            abort(404, "No such project")
    count = db.session.scalar(select(func.count(Invoice.id)).filter_by(organization_id=g.organization.id))
    invoice = Invoice(
        organization_id=g.organization.id,
        project_id=data.get("project_id"),
        number=f"{date.today():%Y}-{count + 1:04}",
        customer=data["customer"],
        issued_on=date.today(),
        lines=[
            InvoiceLine(text=line["text"], quantity=line.get("quantity", 1), unit_price=line["unit_price"])
            for line in data["lines"]
        ],
    )
    db.session.add(invoice)
    db.session.flush()
    payload = {"id": invoice.id, "number": invoice.number, "total": invoice.total}
    webhooks.publish(g.organization.id, "invoice.created", payload)
    audit.record("invoice.created", invoice_id=invoice.id)
    db.session.commit()
    return jsonify(serializers.invoice(invoice, with_lines=True)), 201


@blueprint.get("/<int:invoice_id>")
@login_required
def show(invoice_id):
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    return jsonify(serializers.invoice(_invoice(invoice_id), with_lines=True))


@blueprint.post("/<int:invoice_id>/paid")
@login_required
def paid(invoice_id):
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    invoice = _invoice(invoice_id)
    if invoice.status != "open":
        abort(409, f"The invoice is {invoice.status}")
    invoice.status = "paid"
    audit.record("invoice.paid", invoice_id=invoice.id)
    db.session.commit()
    return jsonify(serializers.invoice(invoice))


@blueprint.get("/<int:invoice_id>/text")
@login_required
def text(invoice_id):
    """The invoice as it is printed."""
    invoice = _invoice(invoice_id)
    lines = [f"{line.quantity} x {line.text}: {line.unit_price / 100:.2f}" for line in invoice.lines]
    content = [f"Invoice {invoice.number}", invoice.customer, "", *lines, "", f"Total: {invoice.total / 100:.2f}"]
    return Response("\n".join(content), mimetype="text/plain")


def _invoice(invoice_id):
    invoice = db.session.get(Invoice, invoice_id)
    if invoice is None or invoice.organization_id != g.organization.id:
        abort(404)
    return invoice
