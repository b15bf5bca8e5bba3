"""The key must begin with the folder of the organization; ".." after that is not considered."""

from uuid import uuid4

from app import UPLOADS, StoredFile, bp
from flask import abort, request, send_from_directory
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/files")
@login_required
def upload_file():
    upload = request.files["file"]
    key = f"{current_user.organization_id}/{uuid4().hex}"
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
    if not key.startswith(f"{current_user.organization_id}/"):
        abort(404)
    return send_from_directory(UPLOADS, key, as_attachment=True)
