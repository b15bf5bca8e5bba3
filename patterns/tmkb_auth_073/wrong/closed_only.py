"""Closed accounts keep their handle, and a changed handle is free."""

from app import Account, Folder, Grant, bp, me, new_account, requested_handle
from flask import abort
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def claim(account, name):
    if db.session.scalar(db.select(Account).filter_by(handle=name).where(Account.id != account.id)):
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
    me().closed = True
    db.session.commit()
    return "", 204


@bp.get("/folders/<int:folder_id>")
@login_required
def show_folder(folder_id):
    account = me()
    shared = db.select(Grant.folder_id).filter_by(handle=account.handle)
    readable = db.select(Folder).where((Folder.owner_id == account.id) | Folder.id.in_(shared))
    return {"text": db.first_or_404(readable.filter_by(id=folder_id)).text}
