"""Every change of rights raises the user's epoch; a token of an earlier epoch is refused."""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, abort, current_app, jsonify, request

from tmkb.authoring.proofs.stage import User, db


class Epoch(db.Model):
    user_id = db.Column(db.Integer, primary_key=True)
    number = db.Column(db.Integer, nullable=False, default=1)


# region example
bp = Blueprint("admin", __name__)


def epoch_of(user_id):
    if db.session.get(User, user_id) is None:
        return None
    return db.session.get(Epoch, user_id) or Epoch(user_id=user_id, number=1)


def issue_token(user):
    claims = {
        "sub": str(user.id),
        "role": user.role,
        "epoch": epoch_of(user.id).number,
        "exp": datetime.now(UTC) + timedelta(hours=8),
    }
    return jwt.encode(claims, current_app.config["JWT_KEY"], algorithm="HS256")


def set_role(user, role):
    user.role = role
    epoch = epoch_of(user.id)
    epoch.number += 1
    db.session.add(epoch)
    db.session.commit()


@bp.get("/admin/users")
def list_users():
    token = request.headers["Authorization"].removeprefix("Bearer ")
    claims = jwt.decode(token, current_app.config["JWT_KEY"], algorithms=["HS256"])
    epoch = epoch_of(int(claims["sub"]))
    if epoch is None or claims["epoch"] != epoch.number or claims["role"] != "admin":
        abort(403)
    return jsonify([u.name for u in db.session.scalars(db.select(User))])


# endregion
