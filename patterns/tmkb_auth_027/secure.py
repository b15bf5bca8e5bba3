"""Support acts for customers who let it in, until a given time, short of what is barred, and the trail names both."""

from datetime import UTC, datetime

from flask import Blueprint, abort, jsonify, request, session
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class Profile(db.Model):
    user_id = db.Column(db.Integer, primary_key=True)
    language = db.Column(db.String, nullable=False, default="en")
    password = db.Column(db.String, nullable=False, default="old")


class SupportGrant(db.Model):
    """An organization lets one support agent in, until a given time."""

    id = db.Column(db.Integer, primary_key=True)
    agent_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    until = db.Column(db.DateTime, nullable=False)


class AuditEntry(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    action = db.Column(db.String, nullable=False)
    actor_id = db.Column(db.Integer, nullable=False)
    acting_as_id = db.Column(db.Integer)


def now():
    return datetime.now(UTC).replace(tzinfo=None)


# region example
bp = Blueprint("profile", __name__)


@bp.post("/support/act-as/<int:user_id>")
@login_required
def act_as(user_id):
    if current_user.role != "support":
        abort(403)
    session["acting_as"] = user_id
    return "", 204


def effective_user():
    if "acting_as" not in session:
        return current_user
    # region template
    customer = db.get_or_404(User, session["acting_as"])
    grants = db.select(SupportGrant).filter_by(agent_id=current_user.id, organization_id=customer.organization_id)
    if db.session.scalar(grants.where(SupportGrant.until > now())) is None:
        abort(403)
    # endregion
    return customer


def audit(action):
    db.session.add(AuditEntry(action=action, actor_id=current_user.id, acting_as_id=effective_user().id))


@bp.get("/profile")
@login_required
def show_profile():
    profile = db.get_or_404(Profile, effective_user().id)
    return jsonify(language=profile.language)


@bp.put("/profile/language")
@login_required
def change_language():
    profile = db.get_or_404(Profile, effective_user().id)
    profile.language = request.json["language"]
    audit("language changed")
    db.session.commit()
    return "", 204


@bp.put("/profile/password")
@login_required
def change_password():
    if "acting_as" in session:
        abort(403)
    profile = db.get_or_404(Profile, effective_user().id)
    profile.password = request.json["password"]
    audit("password changed")
    db.session.commit()
    return "", 204


# endregion
