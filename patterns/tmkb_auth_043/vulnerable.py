"""The guard reads the organization from one part of the request, and the views read it again from all parts."""

from functools import wraps

from app import bp, find_budget, parameters
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def own_organization(view):
    @wraps(view)
    @login_required
    def guarded(*args, **kwargs):
        if request.values.get("org", type=int) != current_user.organization_id:
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


# endregion
