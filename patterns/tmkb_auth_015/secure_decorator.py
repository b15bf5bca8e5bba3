"""A decorator at each operation names its permission; the area itself requires only a login."""

from functools import wraps

from app import PERMISSIONS, audit_log, bp, clear_log, disable
from flask import abort
from flask_login import current_user, login_required


# region example
def requires(permission):
    def guard(view):
        @wraps(view)
        def guarded(*args, **kwargs):
            if permission not in PERMISSIONS.get(current_user.role, ()):
                abort(403)
            return view(*args, **kwargs)

        return guarded

    return guard


@bp.before_request
@login_required
def require_login():
    pass


@bp.post("/users/<int:user_id>/disable")
@requires("users.disable")
def disable_user(user_id):
    return disable(user_id)


@bp.get("/audit")
@requires("audit.read")
def read_audit():
    return audit_log()


@bp.delete("/audit")
@requires("audit.clear")
def clear_audit():
    return clear_log()


# endregion
