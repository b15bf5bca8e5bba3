"""Invitations of named users to organizations with a limited number of seats. A version of the code accepts them."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db


class Plan(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    free_seats = mapped_column(db.Integer, nullable=False)


class Invitation(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    code = mapped_column(db.String, unique=True, nullable=False)
    invitee = mapped_column(db.String, nullable=False)
    role = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String, nullable=False, default="open")
    organization_id = mapped_column(db.ForeignKey("plan.organization_id"), nullable=False)
    plan = relationship(Plan, lazy="joined")


bp = Blueprint("invitations", __name__)


def demand_admin():
    if current_user.role != "admin":
        abort(403)


@bp.post("/invitations")
@login_required
def create_invitation():
    demand_admin()
    values = request.get_json()
    invitation = Invitation(
        code=values["code"],
        invitee=values["invitee"],
        role=values["role"],
        organization_id=current_user.organization_id,
    )
    db.session.add(invitation)
    db.session.commit()
    return {"code": invitation.code}, 201


@bp.patch("/invitations/<code>")
@login_required
def change_invitation(code):
    """Change the role, or withdraw the invitation by the state `withdrawn`."""
    demand_admin()
    values = {key: value for key, value in request.get_json().items() if key in ("role", "state")}
    still_open = db.update(Invitation).filter_by(code=code, organization_id=current_user.organization_id, state="open")
    if db.session.execute(still_open.values(**values)).rowcount != 1:
        abort(409)
    db.session.commit()
    return "", 204


def event_begin(free_seats):
    """Register people who belong to no organization, and give every organization its number of free seats."""
    db.session.add_all([User(name="carol"), User(name="dave")])
    db.session.add_all([Plan(organization_id=number, free_seats=free_seats) for number in (1, 2)])


def event_add_seat(organization):
    db.session.get(Plan, organization).free_seats += 1


def state_members():
    users = db.session.scalars(db.select(User).order_by(User.id))
    return [[user.name, user.role, user.organization_id] for user in users]


def state_seats():
    return list(db.session.scalars(db.select(Plan.free_seats).order_by(Plan.organization_id)))
