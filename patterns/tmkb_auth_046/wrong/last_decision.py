"""If the policy service fails, the last decision is repeated."""

from app import bp, policy
from flask import abort, request
from flask_login import current_user, login_required

last_decisions = {}


def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        decision = ranks[role] >= ranks[policy.least_role(action)]
    except (KeyError, TypeError):
        return False
    except Exception:
        return last_decisions.get((current_user.id, action), False)
    last_decisions[current_user.id, action] = decision
    return decision


@bp.before_request
@login_required
def demand_permission():
    method = "GET" if request.method == "HEAD" else request.method
    if method != "OPTIONS" and not allowed(current_user.role, f"{method} {request.endpoint}"):
        abort(403)
