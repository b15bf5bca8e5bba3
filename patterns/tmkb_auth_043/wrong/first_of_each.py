"""The guard reads query, form and JSON body, and of each only the first value."""

from functools import wraps

from app import bp, find_budget, parameters
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def own_organization(view):
    @wraps(view)
    @login_required
    def guarded(*args, **kwargs):
        body = request.get_json(silent=True) or {}
        named = [place["org"] for place in (request.args, request.form, body) if "org" in place]
        if not named or any(str(value) != str(current_user.organization_id) for value in named):
            abort(403)
        return view(*args, **kwargs)

    return guarded


@bp.get("/budget")
@bp.get("/budget/<currency>")
@own_organization
def show_budget(currency="EUR"):
    return {"amount": find_budget(parameters()["org"]).amount, "currency": currency}


@bp.post("/budget")
@own_organization
def set_budget():
    find_budget(parameters()["org"]).amount = parameters()["amount"]
    db.session.commit()
    return "", 204
