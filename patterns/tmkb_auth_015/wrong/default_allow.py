"""An operation that is not listed needs no permission."""

from app import PERMISSIONS, audit_log, bp, disable
from flask import abort, request
from flask_login import current_user, login_required

NEEDS = {"admin.disable_user": "users.disable", "admin.read_audit": "audit.read"}


@bp.before_request
@login_required
def require_permission():
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return  # a preflight request, which calls no view
    role = getattr(current_user, "role", None)
    if request.endpoint in NEEDS and NEEDS[request.endpoint] not in PERMISSIONS.get(role, ()):
        abort(403)


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.get("/audit")
def read_audit():
    return audit_log()
