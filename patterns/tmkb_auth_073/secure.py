"""A handle belongs to its first account for ever, grants name the account's id, and closed accounts keep both."""

from app import Folder, Grant, Handle, bp, me, new_account, requested_handle
from flask import abort
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def claim(account, name):
    handle = db.session.get(Handle, name)
    if handle is None:
        db.session.add(Handle(name=name, account_id=account.id))
    elif handle.account_id != account.id:
        abort(409)
    account.handle = name


# endregion


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
    shared = db.select(Grant.folder_id).filter_by(account_id=account.id)
    readable = db.select(Folder).where((Folder.owner_id == account.id) | Folder.id.in_(shared))
    return {"text": db.first_or_404(readable.filter_by(id=folder_id)).text}


# endregion
