"""Accounts with a public handle. Folders are shared with accounts, and messages are sent to handles."""

import re

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Account(db.Model):
    """SQLite gives the id of the deleted last row to the next one."""

    id = mapped_column(db.Integer, primary_key=True)
    login_id = mapped_column(db.Integer, nullable=False)
    handle = mapped_column(db.String, unique=True)
    closed = mapped_column(db.Boolean, nullable=False, default=False)


class Handle(db.Model):
    """A handle and the account that has claimed it first."""

    name = mapped_column(db.String, primary_key=True)
    account_id = mapped_column(db.Integer, nullable=False)


class Folder(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    owner_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)


class Grant(db.Model):
    """An account may read the folder. The handle is what the owner has entered."""

    folder_id = mapped_column(db.Integer, primary_key=True)
    account_id = mapped_column(db.Integer, primary_key=True)
    handle = mapped_column(db.String, nullable=False)


class Message(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    account_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("accounts", __name__)


def open_accounts(**values):
    return db.select(Account).filter_by(closed=False, **values)


def me():
    return db.session.scalar(open_accounts(login_id=current_user.id)) or abort(403)


def requested_handle():
    name = request.get_json()["handle"].lower()
    return name if re.fullmatch("[a-z0-9]{3,20}", name) else abort(400)


def new_account():
    if db.session.scalar(open_accounts(login_id=current_user.id)):
        abort(409)
    account = Account(login_id=current_user.id)
    db.session.add(account)
    db.session.flush()
    return account


@bp.post("/folders")
@login_required
def create_folder():
    folder = Folder(owner_id=me().id, text=request.get_json()["text"])
    db.session.add(folder)
    db.session.commit()
    return {"id": folder.id}, 201


@bp.post("/folders/<int:folder_id>/grants")
@login_required
def share_folder(folder_id):
    db.first_or_404(db.select(Folder).filter_by(id=folder_id, owner_id=me().id))
    account = db.first_or_404(open_accounts(handle=requested_handle()))
    db.session.merge(Grant(folder_id=folder_id, account_id=account.id, handle=account.handle))
    db.session.commit()
    return "", 204


@bp.post("/messages")
@login_required
def send_message():
    me()
    recipient = db.first_or_404(open_accounts(handle=requested_handle()))
    db.session.add(Message(account_id=recipient.id, text=request.get_json()["text"]))
    db.session.commit()
    return "", 204


@bp.get("/messages")
@login_required
def list_messages():
    return db.session.scalars(db.select(Message.text).filter_by(account_id=me().id)).all()


def event_carol():
    db.session.add(User(id=4, name="carol"))


def event_release(handle):
    """Make a handle available, as the support does for the owner of a trademark."""
    db.session.execute(db.delete(Handle).filter_by(name=handle))
    db.session.execute(db.update(Account).filter_by(handle=handle, closed=True).values(handle=None))


def state_accounts():
    columns = Account.handle, Account.login_id, Account.closed
    return [list(row) for row in db.session.execute(db.select(*columns).order_by(Account.id))]
