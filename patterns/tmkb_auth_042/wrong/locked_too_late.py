"""The rows are locked between the check and the write, and not checked again."""

from app import Invitation, Plan, bp
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def locked_admins(organization_id):
    """Lock the organization's row, and return its admins of now."""
    admins = db.session.scalars(db.select(User).filter_by(organization_id=organization_id, role="admin")).all()
    db.session.get(Plan, organization_id, with_for_update=True)
    return admins


@bp.post("/invitations/<code>/accept")
@login_required
def accept_invitation(code):
    invitation = db.first_or_404(db.select(Invitation).filter_by(code=code, invitee=current_user.name))
    if invitation.state != "open" or invitation.plan.free_seats < 1:
        abort(409)
    invitation = db.session.get(Invitation, invitation.id, with_for_update={"of": Invitation})
    plan = db.session.get(Plan, invitation.organization_id, with_for_update=True)
    invitation.state = "accepted"
    plan.free_seats -= 1
    current_user.organization_id, current_user.role = invitation.organization_id, invitation.role
    db.session.commit()
    return {"role": current_user.role}


@bp.post("/admins/<name>/demote")
@login_required
def demote_admin(name):
    admins = locked_admins(current_user.organization_id)
    if current_user not in admins:
        abort(403)
    if len(admins) == 1:
        abort(409)
    [user] = [admin for admin in admins if admin.name == name] or abort(404)
    user.role = "member"
    db.session.commit()
    return "", 204
