from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Membership, User
from worklane.models.accounts import ROLES
from worklane.requests import body, page
from worklane.services import audit, notifications

blueprint = Blueprint("members", __name__, url_prefix="/members")


@blueprint.get("")
@login_required
def index():
    if g.membership.role == "guest":
        abort(403)
    query = select(Membership).filter_by(organization_id=g.organization.id).order_by(Membership.id)
    rows = db.session.scalars(page(query))
    return jsonify([serializers.membership(each, with_rate=g.membership.is_admin) for each in rows])


@blueprint.post("")
@login_required
def add():
    """Add somebody who has an account already."""
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    data = body("email")
    role = data.get("role", "member")
    _check_role(role)
    user = db.session.scalar(select(User).filter_by(email=data["email"].lower()))
    if user is None:
        abort(404, "No account with this email")
    if user.membership_in(g.organization.id):
        abort(409, "Already a member")
    membership = Membership(organization_id=g.organization.id, user_id=user.id, role=role)
    db.session.add(membership)
    audit.record("member.added", user_id=user.id, role=role)
    notifications.notify(user, g.organization.id, f"You are now a member of {g.organization.name}", by_mail=True)
    db.session.commit()
    return jsonify(serializers.membership(membership)), 201


@blueprint.get("/<int:user_id>")
@login_required
def show(user_id):
    if g.membership.role == "guest" and user_id != current_user.id:
        abort(403)
    membership = _membership(user_id)
    return jsonify(serializers.membership(membership, with_rate=g.membership.is_admin))


@blueprint.patch("/<int:user_id>")
@login_required
def change(user_id):
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    membership = _membership(user_id)
    data = body()
    if "role" in data:
        if "owner" in (membership.role, data["role"]) and g.membership.role != "owner":
            abort(403, "Only owners can do this")
        _check_role(data["role"])
        membership.role = data["role"]
    membership.job_title = data.get("job_title", membership.job_title)
    membership.hourly_rate = data.get("hourly_rate", membership.hourly_rate)
    audit.record("member.changed", user_id=user_id, role=membership.role)
    db.session.commit()
    return jsonify(serializers.membership(membership, with_rate=True))


@blueprint.delete("/<int:user_id>")
@login_required
def remove(user_id):
    membership = _membership(user_id)
    if user_id != current_user.id and g.membership.role not in ("admin", "owner"):
        abort(403)
    if membership.role == "owner" and g.membership.role != "owner":
        abort(403, "Only owners can do this")
    db.session.delete(membership)
    audit.record("member.removed", user_id=user_id)
    db.session.commit()
    return "", 204


def _membership(user_id):
    query = select(Membership).filter_by(organization_id=g.organization.id, user_id=user_id)
    return db.session.scalar(query) or abort(404)


def _check_role(role):
    if role not in ROLES:
        abort(400, "Unknown role")
    if role == "owner" and g.membership.role != "owner":
        abort(403, "Only owners can do this")
