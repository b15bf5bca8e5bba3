"""Nobody grants a role as high as their own; an invitation serves once, for one address, organization and role."""

import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Membership(db.Model):
    organization_id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, primary_key=True)
    role = db.Column(db.String, nullable=False)


class Invitation(db.Model):
    token = db.Column(db.String, primary_key=True)
    email = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    role = db.Column(db.String, nullable=False)
    expires_at = db.Column(db.DateTime, nullable=False)
    accepted_at = db.Column(db.DateTime)


def verified_email(user):
    return f"{user.name}@example.com"


def now():
    return datetime.now(UTC).replace(tzinfo=None)


# region example
bp = Blueprint("members", __name__)

RANK = {"member": 1, "manager": 2, "admin": 3, "owner": 4}


def manager_of(organization_id):
    membership = db.session.get(Membership, (organization_id, current_user.id))
    if membership is None or RANK[membership.role] < RANK["manager"]:
        abort(403)
    return membership


def require_above(grantor, *roles):
    if any(role not in RANK or RANK[role] >= RANK[grantor.role] for role in roles):
        abort(403)


@bp.post("/organizations/<int:organization_id>/invitations")
@login_required
def invite(organization_id):
    grantor = manager_of(organization_id)
    role = request.json["role"]
    require_above(grantor, role)
    invitation = Invitation(
        token=secrets.token_urlsafe(),
        email=request.json["email"],
        organization_id=organization_id,
        role=role,
        expires_at=now() + timedelta(days=7),
    )
    db.session.add(invitation)
    db.session.commit()
    return jsonify(token=invitation.token), 201


@bp.put("/organizations/<int:organization_id>/members/<int:user_id>")
@login_required
def change_role(organization_id, user_id):
    grantor = manager_of(organization_id)
    role = request.json["role"]
    member = db.get_or_404(Membership, (organization_id, user_id))
    require_above(grantor, member.role, role)
    member.role = role
    db.session.commit()
    return "", 204


@bp.post("/organizations/<int:organization_id>/invitations/<token>/accept")
@login_required
def accept(organization_id, token):
    # region template
    open_invitation = db.update(Invitation).filter_by(
        token=token, organization_id=organization_id, email=verified_email(current_user), accepted_at=None
    )
    claim = open_invitation.where(Invitation.expires_at > now()).values(accepted_at=now())
    role = db.session.scalar(claim.returning(Invitation.role))
    if role is None:
        abort(404)
    # endregion
    db.session.merge(Membership(organization_id=organization_id, user_id=current_user.id, role=role))
    db.session.commit()
    return "", 204


# endregion
