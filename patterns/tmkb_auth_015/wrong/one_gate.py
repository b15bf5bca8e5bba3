"""Every role with a permission in the area may call all of its operations."""

from app import audit_log, bp, clear_log, disable
from flask import abort, request
from flask_login import current_user, login_required


@bp.before_request
@login_required
def require_permission():
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return  # a preflight request, which calls no view
    role = getattr(current_user, "role", None)
    if role not in ("admin", "auditor"):
        abort(403)


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()
