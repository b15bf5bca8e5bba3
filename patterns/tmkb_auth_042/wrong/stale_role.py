"""The invitation is taken correctly, and the role comes from the row that was read before."""

from app import Invitation, Plan, bp
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def take_invitation(invitation):
    still_open = db.update(Invitation).filter_by(id=invitation.id, state="open")
    if db.session.execute(still_open.values(state="accepted")).rowcount != 1:
        abort(409)
    return invitation.role


def take_seat(plan):
    has_seat = db.update(Plan).where(Plan.organization_id == plan.organization_id, Plan.free_seats > 0)
    if db.session.execute(has_seat.values(free_seats=Plan.free_seats - 1)).rowcount != 1:
        abort(409)


def locked_admins(organization_id):
    """Lock the organization's row, and return its admins of now."""
    db.session.get(Plan, organization_id, with_for_update=True)
    return db.session.scalars(db.select(User).filter_by(organization_id=organization_id, role="admin")).all()


@bp.post("/invitations/<code>/accept")
@login_required
def accept_invitation(code):
    invitation = db.first_or_404(db.select(Invitation).filter_by(code=code, invitee=current_user.name))
    role = take_invitation(invitation)
    take_seat(invitation.plan)
    current_user.organization_id, current_user.role = invitation.organization_id, role
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
