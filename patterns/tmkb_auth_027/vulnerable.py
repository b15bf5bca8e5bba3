"""A support agent becomes the customer: without limits, and the audit trail names the customer."""

from app import AuditEntry, acting_for, bp
from flask import g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


# region example
@bp.before_request
@login_required
def load_user():
    if request.method == "OPTIONS":
        return
    g.user, customer_id = current_user, acting_for()
    if customer_id:
        g.user = db.get_or_404(User, customer_id)
    if request.method != "GET":
        db.session.add(AuditEntry(action=request.endpoint, actor_id=g.user.id))
        db.session.commit()


# endregion
