"""An admin call that takes the identity from the token and the role from the database."""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, abort, current_app, jsonify, request

from tmkb.authoring.proofs.stage import User, db

# region example
bp = Blueprint("admin", __name__)


def issue_token(user):
    claims = {"sub": str(user.id), "role": user.role, "exp": datetime.now(UTC) + timedelta(hours=8)}
    return jwt.encode(claims, current_app.config["JWT_KEY"], algorithm="HS256")


def set_role(user, role):
    user.role = role
    db.session.commit()


@bp.get("/admin/users")
def list_users():
    token = request.headers["Authorization"].removeprefix("Bearer ")
    # region template
    claims = jwt.decode(token, current_app.config["JWT_KEY"], algorithms=["HS256"])
    user = db.session.get(User, int(claims["sub"]))
    if user is None or user.role != "admin":
        abort(403)
    # endregion
    return jsonify([u.name for u in db.session.scalars(db.select(User))])


# endregion
