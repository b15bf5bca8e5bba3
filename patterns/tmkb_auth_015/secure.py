"""Each operation of the management area needs a permission; an operation that is not listed is refused."""

from app import PERMISSIONS, audit_log, bp, disable
from flask import abort, request
from flask_login import current_user, login_required

# region example
NEEDS = {"admin.disable_user": "users.disable", "admin.read_audit": "audit.read"}


# region template
@bp.before_request
@login_required
def require_permission():
    """NEEDS: permission of each endpoint."""
    if request.method == "OPTIONS" and request.url_rule.provide_automatic_options:
        return
    role = getattr(current_user, "role", None)
    if NEEDS.get(request.endpoint) not in PERMISSIONS.get(role, ()):
        abort(403)


# endregion


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.get("/audit")
def read_audit():
    return audit_log()


# endregion
