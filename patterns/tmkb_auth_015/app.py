"""The management area of an application for several organizations. A version of the code guards it."""

from flask import Blueprint, abort
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Membership(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    active = mapped_column(db.Boolean, nullable=False, default=True)


class AuditEntry(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("admin", __name__, url_prefix="/admin")

PERMISSIONS = {
    "admin": {"users.disable", "audit.read", "audit.clear"},
    "auditor": {"audit.read"},
    "member": set(),
}


@bp.before_app_request
def refuse_disabled_users():
    if current_user.is_authenticated and db.session.scalar(
        memberships(active=False).filter_by(user_id=current_user.id)
    ):
        abort(401)


def memberships(**conditions):
    return db.select(Membership).filter_by(organization_id=current_user.organization_id, **conditions)


def disable(user_id):
    membership = db.first_or_404(memberships(user_id=user_id))
    membership.active = False
    log(f"{user_id} disabled")
    return "", 204


def log(text):
    db.session.add(AuditEntry(text=text, organization_id=current_user.organization_id))
    db.session.commit()


def audit_log():
    entries = db.select(AuditEntry).filter_by(organization_id=current_user.organization_id)
    return [entry.text for entry in db.session.scalars(entries)]


def clear_log():
    db.session.execute(db.delete(AuditEntry).filter_by(organization_id=current_user.organization_id))
    db.session.commit()
    return "", 204


@bp.post("/purge")
def purge():
    """Delete the log of all organizations. A maintenance route that was added later, for one use."""
    db.session.execute(db.delete(AuditEntry))
    db.session.commit()
    return "", 204


@bp.route("/reset", methods=["POST", "OPTIONS"])
def reset():
    """Enable all accounts. The route answers OPTIONS itself, for a frontend on another origin."""
    db.session.execute(db.update(Membership).values(active=True))
    db.session.commit()
    return "", 204


def event_start():
    for user in db.session.scalars(db.select(User)):
        db.session.add(Membership(user_id=user.id, organization_id=user.organization_id))
    db.session.add(Membership(user_id=99, organization_id=1, active=False))
    db.session.add(AuditEntry(text="Alice read the payroll", organization_id=1))


def event_disable(user_id):
    db.session.scalars(db.select(Membership).filter_by(user_id=user_id)).one().active = False


def state_accounts():
    rows = db.session.execute(db.select(Membership.user_id, Membership.active).order_by(Membership.id))
    return [list(row) for row in rows]


def state_log():
    return list(db.session.scalars(db.select(AuditEntry.text).order_by(AuditEntry.id)))
