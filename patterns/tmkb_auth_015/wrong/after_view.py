"""The permission is checked after the view has run."""

from app import PERMISSIONS, audit_log, bp, clear_log, disable
from flask import make_response, request
from flask_login import current_user, login_required

NEEDS = {
    ("admin.disable_user", "POST"): "users.disable",
    ("admin.audit", "GET"): "audit.read",
    ("admin.audit", "HEAD"): "audit.read",
    ("admin.audit", "DELETE"): "audit.clear",
}


@bp.before_request
@login_required
def require_login():
    pass


@bp.after_request
def require_permission(response):
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return response  # a preflight request, which calls no view
    if response.status_code == 401:
        return response
    role = getattr(current_user, "role", None)
    if NEEDS.get((request.endpoint, request.method)) not in PERMISSIONS.get(role, ()):
        return make_response("forbidden", 403)
    return response


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()
