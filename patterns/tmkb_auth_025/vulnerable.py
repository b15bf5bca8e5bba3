"""Managers invite and promote people to any role, and any account can use an invitation at any time."""

from app import ROLES, Invitation, Membership, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def manager_of(organization_id):
    membership = db.session.get(Membership, (organization_id, current_user.id))
    if membership is None or membership.role not in ROLES[1:]:
        abort(403)
    return membership


@bp.post("/organizations/<int:organization_id>/invitations")
@login_required
def invite(organization_id):
    manager_of(organization_id)
    data = request.get_json()
    invitation = Invitation(
        email=data["email"], role=data["role"], organization_id=organization_id, inviter_id=current_user.id
    )
    db.session.add(invitation)
    db.session.commit()
    return {"token": invitation.token}, 201


@bp.put("/organizations/<int:organization_id>/members/<int:user_id>")
@login_required
def change_role(organization_id, user_id):
    manager_of(organization_id)
    role = request.get_json()["role"]
    member = db.get_or_404(Membership, (organization_id, user_id))
    member.role = role
    db.session.commit()
    return "", 204


@bp.post("/invitations/<token>/accept")
@login_required
def accept(token):
    invitation = db.get_or_404(Invitation, token)
    invitation.accepted_at = db.func.now()
    organization_id = invitation.organization_id
    db.session.merge(Membership(organization_id=organization_id, user_id=current_user.id, role=invitation.role))
    db.session.commit()
    return "", 204


# endregion
