"""A grant of any agent counts."""

from app import AuditEntry, SupportGrant, acting_for, bp, now
from flask import abort, g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db

SUPPORT_MAY = {"profile.show_profile", "profile.change_language"}


def granted_customer(user_id):
    customer = db.get_or_404(User, user_id)
    grants = db.select(SupportGrant).filter_by(organization_id=customer.organization_id)
    if current_user.role != "support" or not db.session.scalar(grants.where(SupportGrant.until > now())):
        abort(403)
    return customer


@bp.before_request
@login_required
def load_user():
    if request.method == "OPTIONS":
        return
    g.user, customer_id = current_user, acting_for()
    if customer_id:
        g.user = granted_customer(customer_id)
        if request.endpoint not in SUPPORT_MAY:
            abort(403)
    if customer_id or request.method != "GET":
        db.session.add(AuditEntry(action=request.endpoint, actor_id=current_user.id, acting_as_id=customer_id))
        db.session.commit()
