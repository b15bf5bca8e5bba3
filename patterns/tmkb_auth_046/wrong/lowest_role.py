"""An unknown role counts as the lowest one."""

from app import bp, policy
from flask import abort, request
from flask_login import current_user, login_required


def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks.get(role, 1) >= ranks[policy.least_role(action)]
    except Exception:
        return False


@bp.before_request
@login_required
def demand_permission():
    method = "GET" if request.method == "HEAD" else request.method
    if method != "OPTIONS" and not allowed(current_user.role, f"{method} {request.endpoint}"):
        abort(403)
