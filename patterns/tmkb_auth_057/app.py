"""Payouts of organizations and a JSON-RPC endpoint. A version of the code adds the page of payouts and its procedures.

`procedure` publishes a function under its name, as a directive such as "use server" or the router of an RPC library
does. A batch runs several calls and returns their results together.
"""

import inspect

from flask import Blueprint, abort, request
from sqlalchemy.orm import mapped_column
from werkzeug.exceptions import HTTPException

from tmkb.authoring.proofs.stage import db


class Payout(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    iban = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String, nullable=False, default="requested")
    organization_id = mapped_column(db.Integer, nullable=False)


PROCEDURES = {}
bp = Blueprint("payouts", __name__)


def procedure(function):
    """Publish a function under its name."""
    PROCEDURES[function.__name__] = function
    return function


def answer(call):
    """Run one call; unknown procedures, and arguments that the function does not have, are refused."""
    try:
        if call.get("method") not in PROCEDURES:
            abort(404)
        function = PROCEDURES[call["method"]]
        try:
            arguments = inspect.signature(function).bind(**call.get("params", {}))
        except TypeError:
            abort(422)
        return {"result": function(*arguments.args, **arguments.kwargs)}, 200
    except HTTPException as error:
        return {"error": error.name}, error.code


@bp.post("/rpc")
def rpc():
    calls = request.get_json()
    if isinstance(calls, list):
        return [answer(call)[0] for call in calls], 207
    return answer(calls)


def state_payouts():
    return [[payout.state, payout.iban] for payout in db.session.scalars(db.select(Payout).order_by(Payout.id))]
