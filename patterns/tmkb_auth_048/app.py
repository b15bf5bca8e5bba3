"""An assistant that pays invoices. The model is a stub that obeys the last instruction in the text that it reads."""

import inspect

from flask import Blueprint, abort, current_app
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    number = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    payments = mapped_column(db.Integer, nullable=False, default=0)


class PendingCall(db.Model):
    id = mapped_column(db.String, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    call = mapped_column(db.JSON, nullable=False)


TOOLS = {}
bp = Blueprint("assistant", __name__)


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
    """Return the tool call that the last instruction names, for example ``DO pay_invoice invoice_id=1``."""
    name, *arguments = text.rpartition("DO ")[2].split()
    return {"name": name, "arguments": {key: int(value) for key, value in (each.split("=") for each in arguments)}}


def event_add_invoice(number, organization_id):
    invoice = Invoice(number=number, organization_id=organization_id)
    db.session.add(invoice)
    db.session.flush()
    return invoice.id


def event_ask(user, message):
    """Send ``message`` as ``user``, and return the id of the call that waits for a confirmation, or ``none``."""
    response = current_app.test_client().post("/chat", json={"message": message}, headers={"X-User": user})
    pending = response.json.get("confirm")
    return pending if isinstance(pending, str) else "none"


def event_pay(user, invoice_id, times=1):
    """Ask for a payment as ``user``, confirm it ``times`` times if necessary, and return each status."""
    client, headers = current_app.test_client(), {"X-User": user}
    body = {"message": f"Please DO pay_invoice invoice_id={invoice_id}"}
    response = client.post("/chat", json=body, headers=headers)
    if response.status_code != 202:
        return [
            response.status_code,
            *(client.post("/chat", json=body, headers=headers).status_code for _ in range(times - 1)),
        ]
    pending = response.json["confirm"]
    if isinstance(pending, dict):  # the client confirms by sending the call again
        body, path = body | {"confirmed": pending}, "/chat"
    else:
        path = f"/calls/{pending}/confirm"
    return [client.post(path, json=body, headers=headers).status_code for _ in range(times)]


def state_payments():
    return [
        [invoice.number, invoice.payments] for invoice in db.session.scalars(db.select(Invoice).order_by(Invoice.id))
    ]
