"""The tools act for the person of the session, by that person's rights, and a payment waits for a confirmation."""

import inspect
import json

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    state = db.Column(db.String, nullable=False, default="open")


TOOLS = {}


def tool(function):
    """Offer a function to the model, as an MCP server or a function-calling library does."""
    TOOLS[function.__name__] = function
    return function


def run(call):
    """Call a tool; unknown names and arguments that its signature does not have are refused."""
    function = TOOLS.get(call["name"]) or abort(422)
    try:
        arguments = inspect.signature(function).bind(**call["arguments"])
    except TypeError:
        abort(422)
    return {"result": function(*arguments.args, **arguments.kwargs)}


def model(text):
    """A language model that does what the last instruction in the text says, whoever wrote it."""
    return json.loads(text.rpartition("DO ")[2])


# region example
bp = Blueprint("assistant", __name__)


@tool
def list_invoices():
    return list(db.session.scalars(db.select(Invoice.id).filter_by(organization_id=current_user.organization_id)))


# region template
@tool
def pay_invoice(invoice_id):
    if current_user.role != "admin":
        abort(403)
    invoice = db.first_or_404(db.select(Invoice).filter_by(id=invoice_id, organization_id=current_user.organization_id))
    # endregion
    invoice.state = "paid"
    db.session.commit()
    return invoice.state


@bp.post("/chat")
@login_required
def chat():
    call = model(f"{current_user.name} writes: {request.json['message']}")
    if call["name"] == "pay_invoice" and request.json.get("confirmed") != call:
        return {"confirm": call}, 202
    return run(call)


# endregion
