"""The decision is yes only for a known rule and a known role, and no if anything fails."""

from app import bp, policy
from flask import abort, current_app, request
from flask_login import current_user, login_required


# region example
# region template
def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks[role] >= ranks[policy.least_role(action)]
    except Exception:
        current_app.logger.exception("No permission for %s to %s", role, action)
        return False


# endregion


@bp.before_request
@login_required
def demand_permission():
    method = "GET" if request.method == "HEAD" else request.method
    if method != "OPTIONS" and not allowed(current_user.role, f"{method} {request.endpoint}"):
        abort(403)


# endregion
