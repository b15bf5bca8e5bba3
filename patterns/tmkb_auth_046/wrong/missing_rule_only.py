"""Only a missing rule is refused."""

from app import bp, policy
from flask import abort, request
from flask_login import current_user, login_required


def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        needed = policy.least_role(action)
        return needed is not None and ranks.get(role, 2) >= ranks.get(needed, 0)
    except Exception:
        return True


@bp.before_request
@login_required
def demand_permission():
    method = "GET" if request.method == "HEAD" else request.method
    if method != "OPTIONS" and not allowed(current_user.role, f"{method} {request.endpoint}"):
        abort(403)
