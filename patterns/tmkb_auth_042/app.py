"""Invitations of named users to organizations with few seats. A version of the code accepts them and demotes admins."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db


class Plan(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    seats = mapped_column(db.Integer, nullable=False)  # for invited people
    free_seats = mapped_column(db.Integer, nullable=False)


class Invitation(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    code = mapped_column(db.String, unique=True, nullable=False)
    invitee = mapped_column(db.String, nullable=False)
    role = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String, nullable=False, default="open")
    organization_id = mapped_column(db.ForeignKey("plan.organization_id"), nullable=False)
    plan = relationship(Plan, lazy="joined")


class Decision(db.Model):
    """What an administrator has decided about a user, who was told that it is done."""

    id = mapped_column(db.Integer, primary_key=True)
    user = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("invitations", __name__)


@bp.errorhandler(OperationalError)
def ended_by_database(_error):
    """Ask the client to repeat a request that the database has ended because of a deadlock."""
    return "", 503


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
    invitee = db.session.scalar(still_open.values(**values).returning(Invitation.invitee))
    if invitee is None:
        abort(409)
    db.session.add_all([Decision(user=invitee, text=value) for value in values.values()])
    db.session.commit()
    return "", 204


def event_begin(free_seats):
    """Register people who belong to no organization, and give every organization its number of free seats."""
    db.session.add_all([User(name="carol"), User(name="dave")])
    db.session.add_all([Plan(organization_id=number, seats=free_seats, free_seats=free_seats) for number in (1, 2)])


def event_add_seat(organization):
    plan = db.session.get(Plan, organization)
    plan.seats, plan.free_seats = plan.seats + 1, plan.free_seats + 1


def event_remove(user):
    """Take a user out of the organization, as an administrator does."""
    db.session.add(Decision(user=user, text="removed"))
    db.session.scalars(db.select(User).filter_by(name=user)).one().organization_id = None


def state_members():
    users = db.session.scalars(db.select(User).order_by(User.id))
    return [[user.name, user.role, user.organization_id] for user in users]


def state_seats():
    return list(db.session.scalars(db.select(Plan.free_seats).order_by(Plan.organization_id)))


def state_broken_rules():
    """Return the rules that no order of the requests, one after another, would break."""
    decisions = {(decision.user, decision.text) for decision in db.session.scalars(db.select(Decision))}
    members = db.session.scalars(db.select(User).filter_by(organization_id=1).order_by(User.id)).all()
    rules = []
    for member in members:
        rules += [f"{member.name} was {text}" for text in ("withdrawn", "removed") if (member.name, text) in decisions]
        if (member.name, "member") in decisions and member.role != "member":
            rules.append(f"{member.name} has the former role")
    if sum(member.name not in ("alice", "bob") for member in members) > db.session.get(Plan, 1).seats:
        rules.append("more members than seats")
    if not any(member.role == "admin" for member in members):
        rules.append("no admin is left")
    return rules
