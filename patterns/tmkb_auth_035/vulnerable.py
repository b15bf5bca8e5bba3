"""The client's file name becomes part of the storage key, and everyone who knows a key downloads the file."""

from app import UPLOADS, StoredFile, bp
from flask import request, send_from_directory
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/files")
@login_required
def upload_file():
    upload = request.files["file"]
    key = f"{current_user.organization_id}/{upload.filename}"
    db.session.add(StoredFile(key=key, name=upload.filename, organization_id=current_user.organization_id))
    db.session.flush()
    path = UPLOADS / key
    path.parent.mkdir(parents=True, exist_ok=True)
    upload.save(path)
    db.session.commit()
    return {"key": key}, 201


@bp.get("/files/<path:key>")
@login_required
def download_file(key):
    return send_from_directory(UPLOADS, key)


# endregion
