"""The management area requires only a login."""

from app import audit_log, bp, clear_log, disable
from flask import request
from flask_login import login_required


# region example
@bp.before_request
@login_required
def require_login():
    pass


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    return disable(user_id)


@bp.route("/audit", methods=["GET", "DELETE"])
def audit():
    return clear_log() if request.method == "DELETE" else audit_log()


# endregion
