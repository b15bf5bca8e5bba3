"""Accounts of organizations and their tokens. A version of the code lets admins manage members."""

from datetime import UTC, datetime, timedelta

import jwt
from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

# Key of the tokens, from the configuration of a real application.
KEY = "0123456789abcdef0123456789abcdef"


class Account(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    role = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer)
    disabled = mapped_column(db.Boolean, nullable=False, default=False)
    epoch = mapped_column(db.Integer, nullable=False, default=1)  # raised by every change of permissions


bp = Blueprint("accounts", __name__)


def signed(claims):
    return jwt.encode({"exp": datetime.now(UTC) + timedelta(hours=8), **claims}, KEY, algorithm="HS256")


@bp.post("/token")
@login_required
def issue_token():
    account = db.get_or_404(Account, current_user.id)
    if account.disabled:
        abort(403)
    claims = {"sub": str(account.id), "role": account.role, "org": account.organization_id, "epoch": account.epoch}
    return {"token": signed(claims)}, 201


def read_token():
    """Return the claims of the bearer token, which is valid."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        return jwt.decode(token, KEY, algorithms=["HS256"], options={"require": ["exp", "sub"]})
    except jwt.InvalidTokenError:
        abort(401)


def event_account(id, name, role, organization):
    db.session.add(Account(id=id, name=name, role=role, organization_id=organization))


def event_changed(id, **values):
    """Change an account as the pages for managing members do."""
    account = db.session.get_one(Account, id)
    for name, value in values.items():
        setattr(account, name, value)
    account.epoch = Account.epoch + 1


def event_changed_by_sql(id, role):
    """Change a role in a script, which does not know the epoch."""
    db.session.execute(db.update(Account).filter_by(id=id).values(role=role))


def event_old_token(id, role, organization):
    """Return a token from before tokens had an epoch."""
    return {"token": signed({"sub": str(id), "role": role, "org": organization})}


def event_deleted(id):
    db.session.delete(db.session.get_one(Account, id))


def state_accounts():
    accounts = db.session.scalars(db.select(Account).order_by(Account.id))
    return [[account.name, account.role, account.organization_id] for account in accounts]
