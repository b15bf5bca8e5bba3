"""The administration of an organization. A version of the code guards it and mounts it under three prefixes."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db

bp = Blueprint("site", __name__)
admin = Blueprint("admin", __name__)
audit = Blueprint("audit", __name__, url_prefix="/audit")


def members():
    if current_user.organization_id is None:
        abort(403)
    return db.select(User).filter_by(organization_id=current_user.organization_id).order_by(User.id)


@bp.get("/welcome")
@login_required
def welcome():
    return {"name": current_user.name}


@admin.get("/", strict_slashes=False)
@login_required
def overview():
    return {"members": len(db.session.scalars(members()).all())}


@admin.get("/users")
@login_required
def users():
    return [{"name": user.name, "role": user.role} for user in db.session.scalars(members())]


@admin.post("/users/<int:user_id>/role")
@login_required
def set_role(user_id):
    db.first_or_404(members().filter_by(id=user_id)).role = request.get_json()["role"]
    db.session.commit()
    return "", 204


@audit.get("/log")
@login_required
def log():
    return {"log": [f"created {user.name}" for user in db.session.scalars(members())]}


admin.register_blueprint(audit)


def state_roles():
    return [[user.name, user.role] for user in db.session.scalars(db.select(User).order_by(User.id))]
