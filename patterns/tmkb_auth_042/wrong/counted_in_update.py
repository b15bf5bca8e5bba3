"""The UPDATE counts the admins, and two UPDATEs of different rows count the same."""

from app import Invitation, bp
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


@bp.post("/invitations/<code>/accept")
@login_required
def accept_invitation(code):
    invitation = db.first_or_404(
        db.select(Invitation).filter_by(code=code, invitee=current_user.name).with_for_update(of=Invitation)
    )
    plan = invitation.plan
    db.session.refresh(plan, with_for_update=True)
    if invitation.state != "open" or plan.free_seats < 1:
        abort(409)
    invitation.state = "accepted"
    plan.free_seats -= 1
    current_user.organization_id, current_user.role = invitation.organization_id, invitation.role
    db.session.commit()
    return {"role": current_user.role}


@bp.post("/admins/<name>/demote")
@login_required
def demote_admin(name):
    if current_user.role != "admin":
        abort(403)
    admins = db.select(db.func.count()).where(
        User.organization_id == current_user.organization_id, User.role == "admin"
    )
    demotion = db.update(User).filter_by(name=name, organization_id=current_user.organization_id, role="admin")
    demoted = demotion.where(admins.scalar_subquery() > 1).values(role="member")
    if db.session.execute(demoted.execution_options(synchronize_session=False)).rowcount != 1:
        abort(409)
    db.session.commit()
    return "", 204
