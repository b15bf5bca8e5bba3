"""The guard compares the single value as text, and a user without an organization has the text None."""

from functools import wraps

from app import bp, find_budget, parameters
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def own_organization(view):
    @wraps(view)
    @login_required
    def guarded(*args, **kwargs):
        if request.values.getlist("org") != [str(current_user.organization_id)]:
            abort(403)
        return view(current_user.organization_id, *args, **kwargs)

    return guarded


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
