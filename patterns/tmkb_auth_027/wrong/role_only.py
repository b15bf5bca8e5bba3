"""The support role alone permits acting as every customer."""

from app import AuditEntry, bp
from flask import abort, g, request, session
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db

SUPPORT_MAY = {"profile.show_profile", "profile.change_language"}


def granted_customer(user_id):
    customer = db.get_or_404(User, user_id)
    if current_user.role != "support":
        abort(403)
    return customer


@bp.before_request
@login_required
def load_user():
    if request.method == "OPTIONS":
        return
    g.user = current_user
    if "acting_as" in session:
        g.user = granted_customer(session["acting_as"])
        if request.endpoint not in SUPPORT_MAY:
            abort(403)
    if "acting_as" in session or request.method != "GET":
        db.session.add(
            AuditEntry(action=request.endpoint, actor_id=current_user.id, acting_as_id=session.get("acting_as"))
        )
        db.session.commit()
