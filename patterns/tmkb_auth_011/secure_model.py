"""The model refuses each assignment of a state unless the current user may make it."""

from app import Invoice, bp, sent_ids
from flask import abort, redirect, render_template_string, url_for
from flask_login import current_user, login_required
from sqlalchemy import event

from tmkb.authoring.proofs.stage import db

# region example
PAGE = """
<p>Invoice {{ invoice.id }} is {{ invoice.state }}.</p>
{% if current_user.role == "admin" %}
<form method="post" action="{{ url_for('.void', invoice_id=invoice.id) }}"><button>Void</button></form>
{% endif %}
"""


@event.listens_for(Invoice.state, "set", propagate=True)  # also for subclasses
def guard_state(invoice, _state, _old, _initiator):
    if invoice.organization_id != current_user.organization_id:
        abort(404)
    if current_user.role != "admin":
        abort(403)


def void_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.state = "void"


@bp.get("/invoices/<int:invoice_id>")
@login_required
def show(invoice_id):
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, organization_id=current_user.organization_id))
    return render_template_string(PAGE, invoice=invoice)


@bp.post("/invoices/<int:invoice_id>/void")
@login_required
def void(invoice_id):
    void_invoice(invoice_id)
    db.session.commit()
    return redirect(url_for(".show", invoice_id=invoice_id))


@bp.post("/api/invoices/void")
@login_required
def void_by_api():
    for invoice_id in sent_ids():
        void_invoice(invoice_id)
    db.session.commit()
    return "", 204


# endregion
