"""The session says for whom its user acts, and not which agent has started that."""

from app import AuditEntry, SupportGrant, bp, now
from flask import abort, g, request, session
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db

SUPPORT_MAY = {"profile.show_profile", "profile.change_language"}


def granted_customer(user_id):
    customer = db.get_or_404(User, user_id)
    grants = db.select(SupportGrant).filter_by(agent_id=current_user.id, organization_id=customer.organization_id)
    if current_user.role != "support" or not db.session.scalar(grants.where(SupportGrant.until > now())):
        abort(403)
    return customer


@bp.before_request
@login_required
def load_user():
    if request.method == "OPTIONS":
        return
    g.user, customer_id = current_user, session.get("acting_as", (None, None))[1]
    if customer_id:
        g.user = granted_customer(customer_id)
        if request.endpoint not in SUPPORT_MAY:
            abort(403)
    if customer_id or request.method != "GET":
        db.session.add(AuditEntry(action=request.endpoint, actor_id=current_user.id, acting_as_id=customer_id))
        db.session.commit()
