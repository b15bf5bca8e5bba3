"""Accounts of users who can confirm who they are. A version of the code changes the sensitive parts of an account.

A password stands for any factor that a user confirms with. An actor of the attacks has one session, which is the
cookie jar of its client. `anonymous` with the header X-User is a second session of that user.
"""

import secrets
from datetime import UTC, datetime

from flask import Blueprint, abort, request, session
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column
from werkzeug.security import check_password_hash, generate_password_hash

from tmkb.authoring.proofs.stage import User, db

ACTIONS = ("email", "payout", "api_key", "close")


class Account(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    password = mapped_column(db.String, nullable=False)
    name = mapped_column(db.String, nullable=False)
    email = mapped_column(db.String, nullable=False)
    iban = mapped_column(db.String, nullable=False)
    closed = mapped_column(db.Boolean, nullable=False, default=False)


class ApiKey(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    token = mapped_column(db.String, nullable=False)


class StepUp(db.Model):
    """A confirmation by a user, in a session, of one action and its new value."""

    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    session_id = mapped_column(db.String, nullable=False)
    action = mapped_column(db.String, nullable=False)
    value = mapped_column(db.String, nullable=False)
    at = mapped_column(db.DateTime, nullable=False)


bp = Blueprint("account", __name__)


def my_account():
    return db.first_or_404(db.select(Account).filter_by(user_id=current_user.id, closed=False))


def new_key():
    key = ApiKey(user_id=current_user.id, token=secrets.token_urlsafe())
    db.session.add(key)
    db.session.commit()
    return {"token": key.token}, 201


@bp.post("/step-up")
@login_required
def step_up():
    body = request.get_json()
    action, value = body["action"], body.get("value", "")
    if action not in ACTIONS or not isinstance(value, str):
        abort(400)
    if not check_password_hash(my_account().password, str(body["password"])):
        abort(403)
    session.setdefault("id", secrets.token_hex())
    db.session.add(
        StepUp(user_id=current_user.id, session_id=session["id"], action=action, value=value, at=datetime.now(UTC))
    )
    db.session.commit()
    return "", 204


def event_register():
    for user in db.session.scalars(db.select(User)):
        password = generate_password_hash(f"{user.name}-password", "pbkdf2:sha256:1")
        db.session.add(
            Account(user_id=user.id, password=password, name=user.name, email=f"{user.name}@example.org", iban="DE1")
        )


def state_accounts():
    accounts = db.session.scalars(db.select(Account).order_by(Account.user_id))
    return [[account.name, account.email, account.iban, account.closed] for account in accounts]


def state_keys():
    return [key.user_id for key in db.session.scalars(db.select(ApiKey))]
