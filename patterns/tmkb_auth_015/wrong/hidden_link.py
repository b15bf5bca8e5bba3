"""Only administrators get the link to the area, and its page sends a header that proves it."""

from app import audit_log, bp, clear_log, disable
from flask import abort, request
from flask_login import login_required


@bp.before_request
@login_required
def require_permission():
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return  # a preflight request, which calls no view
    if "/admin" not in request.headers.get("Referer", "/admin"):
        abort(403)


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()
