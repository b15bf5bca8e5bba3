"""An admin call that takes the identity from the token, and role and organization from the database."""

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
    # region template
    account = db.session.get(Account, int(read_token()["sub"]))
    if account is None or account.role != "admin" or account.organization_id is None:
        abort(403)
    members = db.session.scalars(db.select(Account).filter_by(organization_id=account.organization_id))
    # endregion
    return jsonify([member.name for member in members])


# endregion
