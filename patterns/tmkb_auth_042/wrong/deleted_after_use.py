"""An accepted invitation is deleted, so that nobody can accept it again."""

from app import Invitation, bp
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/invitations/<code>/accept")
@login_required
def accept_invitation(code):
    invitation = db.first_or_404(db.select(Invitation).filter_by(code=code, invitee=current_user.name))
    if invitation.state != "open" or invitation.plan.free_seats < 1:
        abort(409)
    db.session.delete(invitation)
    invitation.plan.free_seats -= 1
    current_user.organization_id, current_user.role = invitation.organization_id, invitation.role
    db.session.commit()
    return {"role": current_user.role}
