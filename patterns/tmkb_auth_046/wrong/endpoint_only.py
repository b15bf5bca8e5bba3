"""The decision is about the endpoint, whatever the method."""

from app import bp, policy
from flask import abort, current_app, request
from flask_login import current_user, login_required


def allowed(role, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks[role] >= ranks[policy.least_role(action)]
    except Exception:
        current_app.logger.exception("No permission for %s to %s", role, action)
        return False


@bp.before_request
@login_required
def demand_permission():
    if request.method != "OPTIONS" and not allowed(current_user.role, request.endpoint):
        abort(403)
