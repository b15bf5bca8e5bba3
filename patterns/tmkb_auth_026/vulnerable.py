"""An admin call that believes the role and the organization written into the token at sign-in."""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, abort, current_app, jsonify, request

from tmkb.authoring.proofs.stage import db


class Account(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    role = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer)


# region example
bp = Blueprint("admin", __name__)


def issue_token(account):
    claims = {
        "sub": str(account.id),
        "role": account.role,
        "org": account.organization_id,
        "exp": datetime.now(UTC) + timedelta(hours=8),
    }
    return jwt.encode(claims, current_app.config["JWT_KEY"], algorithm="HS256")


def read_token():
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        return jwt.decode(
            token, current_app.config["JWT_KEY"], algorithms=["HS256"], options={"require": ["exp", "sub"]}
        )
    except jwt.InvalidTokenError:
        abort(401)


def change_membership(account, role, organization_id):
    account.role, account.organization_id = role, organization_id
    db.session.commit()


@bp.get("/admin/members")
def list_members():
    claims = read_token()
    if claims["role"] != "admin":
        abort(403)
    members = db.session.scalars(db.select(Account).filter_by(organization_id=claims["org"]))
    return jsonify([member.name for member in members])


# endregion
