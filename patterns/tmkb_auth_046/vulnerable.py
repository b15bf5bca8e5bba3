"""The decision is yes without a rule, for an unknown role, and if the policy service fails."""

from app import bp, policy
from flask import abort, request
from flask_login import current_user, login_required


# region example
def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks.get(role, 2) >= ranks.get(policy.least_role(action), 0)
    except Exception:
        return True


@bp.before_request
@login_required
def demand_permission():
    if request.method != "OPTIONS" and not allowed(current_user.role, request.endpoint):
        abort(403)


# endregion
