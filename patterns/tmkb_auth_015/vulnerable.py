"""The management area asks for a login and for nothing else."""

from flask import Blueprint
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Membership(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    active = db.Column(db.Boolean, nullable=False, default=True)


class AuditEntry(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    text = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("admin", __name__, url_prefix="/admin")


@bp.before_request
@login_required
def enter():
    """Everything here is for people who are signed in."""


@bp.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    own = db.select(Membership).filter_by(organization_id=current_user.organization_id)
    membership = db.first_or_404(own.filter_by(user_id=user_id))
    membership.active = False
    db.session.add(AuditEntry(text=f"{user_id} disabled", organization_id=current_user.organization_id))
    db.session.commit()
    return "", 204


@bp.get("/audit")
def read_audit():
    entries = db.session.scalars(db.select(AuditEntry).filter_by(organization_id=current_user.organization_id))
    return [entry.text for entry in entries]


# endregion
