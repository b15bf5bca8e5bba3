"""A released handle is free again after ninety days."""

from datetime import datetime, timedelta

from app import Account, Folder, Grant, bp, me, new_account, open_accounts, requested_handle
from flask import abort
from flask_login import login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Released(db.Model):
    name = mapped_column(db.String, primary_key=True)
    account_id = mapped_column(db.Integer, nullable=False)
    at = mapped_column(db.DateTime, nullable=False)


def release(account):
    db.session.merge(Released(name=account.handle, account_id=account.id, at=datetime.now()))


def claim(account, name):
    recent = db.select(Released).where(Released.name == name, Released.at > datetime.now() - timedelta(days=90))
    if db.session.scalar(recent.where(Released.account_id != account.id)):
        abort(409)
    if account.handle:
        release(account)
    if db.session.scalar(open_accounts(handle=name).where(Account.id != account.id)):
        abort(409)
    account.handle = name


@bp.post("/account")
@login_required
def register():
    claim(new_account(), requested_handle())
    db.session.commit()
    return "", 201


@bp.put("/account/handle")
@login_required
def rename():
    claim(me(), requested_handle())
    db.session.commit()
    return "", 204


@bp.delete("/account")
@login_required
def close():
    account = me()
    release(account)
    account.closed, account.handle = True, None
    db.session.commit()
    return "", 204


@bp.get("/folders/<int:folder_id>")
@login_required
def show_folder(folder_id):
    account = me()
    shared = db.select(Grant.folder_id).filter_by(handle=account.handle)
    readable = db.select(Folder).where((Folder.owner_id == account.id) | Folder.id.in_(shared))
    return {"text": db.first_or_404(readable.filter_by(id=folder_id)).text}
