"""A support agent becomes the customer: without limits, and the audit trail names the customer."""

from app import AuditEntry, bp
from flask import g, request, session
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


# region example
@bp.before_request
@login_required
def load_user():
    if request.method == "OPTIONS":
        return
    g.user = current_user
    if "acting_as" in session:
        g.user = db.get_or_404(User, session["acting_as"])
    if request.method != "GET":
        db.session.add(AuditEntry(action=request.endpoint, actor_id=g.user.id))
        db.session.commit()


# endregion
