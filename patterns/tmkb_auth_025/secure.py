"""Managers grant only roles below their own. An invitation works once, for one e-mail address, until it expires."""

from app import ROLES, Invitation, Membership, bp, now, verified_email
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy.exc import IntegrityError

from tmkb.authoring.proofs.stage import db


# region example
# region template
def roles_below(grantor):
    return ROLES[: ROLES.index(grantor.role)]


def claimed(token):
    claim = db.update(Invitation).filter_by(token=token, email=verified_email(current_user), accepted_at=None)
    claim = claim.where(Invitation.expires_at > now()).values(accepted_at=now())
    return db.session.scalar(claim.returning(Invitation))


# endregion


def manager_of(organization_id):
    membership = db.session.get(Membership, (organization_id, current_user.id))
    if membership is None or membership.role not in ROLES[1:]:
        abort(403)
    return membership


@bp.post("/organizations/<int:organization_id>/invitations")
@login_required
def invite(organization_id):
    grantor = manager_of(organization_id)
    data = request.get_json()
    if data["role"] not in roles_below(grantor):
        abort(403)
    invitation = Invitation(
        email=data["email"], role=data["role"], organization_id=organization_id, inviter_id=current_user.id
    )
    db.session.add(invitation)
    db.session.commit()
    return {"token": invitation.token}, 201


def locked_members(organization_id, grantor_id, user_id):
    """Lock both memberships, in the order of their ids, and return them."""
    members = db.select(Membership).filter_by(organization_id=organization_id)
    members = members.where(Membership.user_id.in_([grantor_id, user_id])).order_by(Membership.user_id)
    locked = {member.user_id: member for member in db.session.scalars(members.with_for_update(of=Membership))}
    grantor = locked.get(grantor_id)
    if grantor is None:
        abort(403)
    return grantor, locked.get(user_id) or abort(404)


@bp.put("/organizations/<int:organization_id>/members/<int:user_id>")
@login_required
def change_role(organization_id, user_id):
    grantor, member = locked_members(organization_id, current_user.id, user_id)
    role = request.get_json()["role"]
    if role not in roles_below(grantor) or member.role not in roles_below(grantor):
        abort(403)
    member.role = role
    db.session.commit()
    return "", 204


@bp.post("/invitations/<token>/accept")
@login_required
def accept(token):
    invitation = claimed(token)
    if invitation is None:
        abort(404)
    organization_id = invitation.organization_id
    inviter = db.session.get(Membership, (organization_id, invitation.inviter_id))
    if inviter is None or invitation.role not in roles_below(inviter):
        abort(404)
    db.session.add(Membership(organization_id=organization_id, user_id=current_user.id, role=invitation.role))
    try:
        db.session.commit()
    except IntegrityError:  # the primary key permits one membership
        abort(409)
    return "", 204


# endregion
