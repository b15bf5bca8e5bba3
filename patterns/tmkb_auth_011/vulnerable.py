"""Only administrators are shown the button that voids an invoice; the function that voids it asks nobody."""

from flask import Blueprint, redirect, render_template_string, url_for
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    state = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("invoices", __name__)

PERMISSIONS = {"admin": {"invoice.void"}, "member": set()}

PAGE = """
<p>Invoice {{ invoice.id }} is {{ invoice.state }}.</p>
{% if may(current_user, "invoice.void") %}
<form method="post" action="{{ url_for('.void', invoice_id=invoice.id) }}"><button>Void</button></form>
{% endif %}
"""


def may(actor, permission):
    return permission in PERMISSIONS.get(actor.role, set())


def void_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.state = "void"
    db.session.commit()


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, organization_id=current_user.organization_id))
    return render_template_string(PAGE, invoice=invoice, may=may)


@bp.post("/invoices/<int:invoice_id>/void")
@login_required
def void(invoice_id):
    void_invoice(invoice_id)
    return redirect(url_for(".show", invoice_id=invoice_id))


@bp.post("/api/invoices/<int:invoice_id>/void")
@login_required
def void_by_api(invoice_id):
    void_invoice(invoice_id)
    return "", 204


# endregion
