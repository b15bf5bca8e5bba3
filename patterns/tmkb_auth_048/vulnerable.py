"""The tools of an assistant act with the application's rights, on whatever the model writes into their arguments."""

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
def list_invoices(organization_id):
    return list(db.session.scalars(db.select(Invoice.id).filter_by(organization_id=organization_id)))


@tool
def pay_invoice(invoice_id):
    invoice = db.get_or_404(Invoice, invoice_id)
    invoice.state = "paid"
    db.session.commit()
    return invoice.state


@bp.post("/chat")
@login_required
def chat():
    call = model(f"{current_user.name} writes: {request.json['message']}")
    return run(call)


# endregion
