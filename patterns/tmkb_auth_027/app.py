"""Profiles of customers, and support agents who act as them. A version of the code decides for whom a request acts."""

from datetime import UTC, datetime, timedelta

from flask import Blueprint, abort, g, request, session
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


def now():
    return datetime.now(UTC).replace(tzinfo=None)


class Profile(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    email = mapped_column(db.String, nullable=False)
    language = mapped_column(db.String, nullable=False, default="en")
    password = mapped_column(db.String, nullable=False, default="old")


class SupportGrant(db.Model):
    """The permission of a support agent to act for an organization, until a given time."""

    id = mapped_column(db.Integer, primary_key=True)
    agent_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    until = mapped_column(db.DateTime, nullable=False)


class AuditEntry(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    action = mapped_column(db.String, nullable=False)
    actor_id = mapped_column(db.Integer, nullable=False)
    acting_as_id = mapped_column(db.Integer)


bp = Blueprint("profile", __name__)
support = Blueprint("support", __name__)
bp.record(lambda state: state.app.register_blueprint(support))


@support.post("/support/act-as/<int:user_id>")
@login_required
def act_as(user_id):
    if current_user.role != "support":
        abort(403)
    session["acting_as"] = [current_user.id, user_id]
    return "", 204


@support.delete("/support/act-as")
@login_required
def stop():
    session.pop("acting_as", None)
    return "", 204


def acting_for():
    """Return the id of the customer for whom this agent acts; None if another user of the browser has started that."""
    agent_id, customer_id = session.get("acting_as", (None, None))
    return customer_id if agent_id == current_user.id else None


@bp.get("/profile")
def show_profile():
    profile = db.get_or_404(Profile, g.user.id)
    return {"language": profile.language, "email": profile.email}


@bp.put("/profile/language")
def change_language():
    return changed("language")


@bp.put("/profile/email")
def change_email():
    return changed("email")


@bp.put("/profile/password")
def change_password():
    return changed("password")


def changed(field):
    profile = db.get_or_404(Profile, g.user.id)
    setattr(profile, field, request.get_json()["value"])
    db.session.commit()
    return "", 204


def event_agent(id, name):
    db.session.add(User(id=id, name=name, role="support"))
    event_profile(id, f"{name}@support.example")


def event_profile(id, email):
    db.session.add(Profile(user_id=id, email=email))


def event_granted(agent, organization, hours=1):
    until = now() + timedelta(hours=hours)
    db.session.add(SupportGrant(agent_id=agent, organization_id=organization, until=until))


def event_revoked():
    db.session.execute(db.delete(SupportGrant))


def state_profiles():
    profiles = db.session.scalars(db.select(Profile).order_by(Profile.user_id))
    return [[profile.email, profile.language, profile.password] for profile in profiles]


def state_trail():
    entries = db.session.scalars(db.select(AuditEntry).order_by(AuditEntry.id))
    return [[entry.action, entry.actor_id, entry.acting_as_id] for entry in entries]
