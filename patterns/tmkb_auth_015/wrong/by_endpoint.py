"""Each endpoint needs a permission, but an endpoint can have several methods."""

from app import PERMISSIONS, audit_log, bp, clear_log, disable
from flask import abort, request
from flask_login import current_user, login_required

NEEDS = {"admin.disable_user": "users.disable", "admin.audit": "audit.read"}


@bp.before_request
@login_required
def require_permission():
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return
    role = getattr(current_user, "role", None)
    if NEEDS.get(request.endpoint) not in PERMISSIONS.get(role, ()):
        abort(403)


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()
