"""The guard reads all values of the organization once, and passes the checked id to the view."""

from functools import wraps

from app import bp, find_budget, parameters
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def own_organization(view):
    @wraps(view)
    @login_required
    def guarded(*args, **kwargs):
        own = current_user.organization_id
        if own is None or request.values.getlist("org") != [str(own)]:
            abort(403)
        return view(own, *args, **kwargs)

    return guarded


# endregion


@bp.get("/budget")
@bp.get("/budget/<currency>")
@own_organization
def show_budget(organization_id, currency="EUR"):
    return {"amount": find_budget(organization_id).amount, "currency": currency}


@bp.post("/budget")
@own_organization
def set_budget(organization_id):
    find_budget(organization_id).amount = parameters()["amount"]
    db.session.commit()
    return "", 204


# endregion
