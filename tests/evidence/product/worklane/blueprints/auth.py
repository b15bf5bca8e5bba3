from flask import Blueprint, abort, current_app, g, jsonify, session
from flask_login import current_user, login_required, login_user, logout_user
from sqlalchemy import select
from werkzeug.security import check_password_hash, generate_password_hash

from worklane import context, serializers
from worklane.extensions import db, login_manager
from worklane.models import User
from worklane.requests import body
from worklane.services import audit

blueprint = Blueprint("auth", __name__, url_prefix="/auth")


@login_manager.user_loader
def _load_user(user_id):
    return db.session.get(User, int(user_id))


@login_manager.unauthorized_handler
def _unauthorized():
    abort(401)


@blueprint.post("/login")
def login():
    data = body("email", "password")
    user = db.session.scalar(select(User).filter_by(email=data["email"].lower()))
    if user is None or not check_password_hash(user.password_hash, data["password"]) or not user.is_active:
        abort(401, "Wrong email or password")
    session.clear()
    login_user(user)
    context.load()
    return jsonify(_me())


@blueprint.post("/logout")
@login_required
def logout():
    logout_user()
    session.clear()
    return "", 204


@blueprint.get("/me")
@login_required
def me():
    return jsonify(_me())


@blueprint.post("/switch")
@login_required
def switch():
    """Work in another of one's organizations."""
    context.switch(body("organization_id")["organization_id"])
    return jsonify(_me())


@blueprint.patch("/me")
@login_required
def change_me():
    data = body()
    for key in ("name", "timezone"):
        if key in data:
            setattr(current_user, key, data[key])
    db.session.commit()
    return jsonify(_me())


@blueprint.post("/password")
@login_required
def change_password():
    data = body("old", "new")
    if not check_password_hash(current_user.password_hash, data["old"]):
        abort(403, "Wrong password")
    current_user.password_hash = generate_password_hash(data["new"], current_app.config["PASSWORD_METHOD"])
    audit.record("password.changed")
    db.session.commit()
    return "", 204


def _me():
    organizations = [
        serializers.organization(each.organization) | {"role": each.role} for each in current_user.memberships
    ]
    current = g.organization and serializers.organization(g.organization)
    return serializers.user(current_user) | {
        "email": current_user.email,
        "organization": current,
        "organizations": organizations,
    }
