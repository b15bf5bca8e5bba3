"""Members of organizations. A version of the code invites people and changes their roles."""

import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db

ROLES = ("member", "manager", "admin", "owner")  # from the lowest to the highest


def now():
    return datetime.now(UTC).replace(tzinfo=None)


def next_week():
    return now() + timedelta(days=7)


def verified_email(user):
    return f"{user.name}@example.com"


class Membership(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)
    role = mapped_column(db.String, nullable=False)


class Invitation(db.Model):
    token = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    email = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    inviter_id = mapped_column(db.Integer, nullable=False)
    role = mapped_column(db.String, nullable=False)
    expires_at = mapped_column(db.DateTime, nullable=False, default=next_week)
    accepted_at = mapped_column(db.DateTime)


bp = Blueprint("members", __name__)


def event_account(id, name):
    db.session.add(User(id=id, name=name))


def event_member(organization, user, role):
    db.session.merge(Membership(organization_id=organization, user_id=user, role=role))


def event_removed(organization, user):
    db.session.delete(db.session.get_one(Membership, (organization, user)))


def state_members():
    members = db.session.scalars(db.select(Membership).order_by(Membership.organization_id, Membership.user_id))
    return [[member.organization_id, member.user_id, member.role] for member in members]


def state_invitations():
    invitations = db.session.scalars(db.select(Invitation).order_by(Invitation.email, Invitation.role))
    return [[invitation.email, invitation.role, invitation.accepted_at is None] for invitation in invitations]
