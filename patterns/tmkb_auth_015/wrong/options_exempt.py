"""Every OPTIONS request passes, although a view can answer OPTIONS itself."""

from app import PERMISSIONS, audit_log, bp, clear_log, disable
from flask import abort, request
from flask_login import current_user, login_required

NEEDS = {
    ("admin.disable_user", "POST"): "users.disable",
    ("admin.audit", "GET"): "audit.read",
    ("admin.audit", "HEAD"): "audit.read",
    ("admin.audit", "DELETE"): "audit.clear",
}


@bp.before_request
@login_required
def require_permission():
    if request.method == "OPTIONS":
        return  # a preflight request, which calls no view
    role = current_user.role
    if NEEDS.get((request.endpoint, request.method)) not in PERMISSIONS.get(role, ()):
        abort(403)


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()
