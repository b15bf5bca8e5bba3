"""Only a failure of the policy service is refused."""

from app import bp, policy
from flask import abort, request
from flask_login import current_user, login_required


def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks.get(role, 2) >= ranks.get(policy.least_role(action), 0)
    except Exception:
        return False


@bp.before_request
@login_required
def demand_permission():
    method = "GET" if request.method == "HEAD" else request.method
    if method != "OPTIONS" and not allowed(current_user.role, f"{method} {request.endpoint}"):
        abort(403)
