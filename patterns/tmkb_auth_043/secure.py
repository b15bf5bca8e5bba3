"""The guard reads the organization once, refuses a request that names it twice, and hands it to the handler."""

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
    # region template
    def guarded():
        named = [value for place in places() for value in place.getlist("org")]
        if len(named) != 1:
            abort(400)
        if str(named[0]) != str(current_user.organization_id):
            abort(403)
        return view(current_user.organization_id)

    # endregion
    return guarded


@bp.route("/report", methods=["GET", "POST"])
@own_organization
def report(organization_id):
    query = db.select(Document.title).filter_by(organization_id=organization_id)
    return {"titles": list(db.session.scalars(query))}


# endregion
