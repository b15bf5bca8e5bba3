"""The guard reads the organization in one place of the request, and the handler reads it again in others."""

from functools import wraps

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from werkzeug.datastructures import MultiDict

from tmkb.authoring.proofs.stage import Document, db

# region example
bp = Blueprint("reports", __name__)


def places():
    return request.args, request.form, MultiDict(request.get_json(silent=True) or {})


def own_organization(view):
    @wraps(view)
    @login_required
    def guarded():
        if request.values.get("org", type=int) != current_user.organization_id:
            abort(403)
        return view()

    return guarded


@bp.route("/report", methods=["GET", "POST"])
@own_organization
def report():
    *_, organization_id = (value for place in places() for value in place.getlist("org"))
    query = db.select(Document.title).filter_by(organization_id=int(organization_id))
    return {"titles": list(db.session.scalars(query))}


# endregion
