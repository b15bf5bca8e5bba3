"""The client may choose the key, because an interrupted upload is repeated under the same key."""

from uuid import uuid4

from app import UPLOADS, StoredFile, bp
from flask import request, send_from_directory
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/files")
@login_required
def upload_file():
    upload = request.files["file"]
    key = request.form.get("key", uuid4().hex)
    db.session.add(StoredFile(key=key, name=upload.filename, organization_id=current_user.organization_id))
    db.session.flush()
    path = UPLOADS / str(current_user.organization_id) / key
    path.parent.mkdir(parents=True, exist_ok=True)
    upload.save(path)
    db.session.commit()
    return {"key": key}, 201


@bp.get("/files/<path:key>")
@login_required
def download_file(key):
    stored = db.first_or_404(db.select(StoredFile).filter_by(key=key, organization_id=current_user.organization_id))
    folder = UPLOADS / str(stored.organization_id)
    return send_from_directory(folder, stored.key, as_attachment=True, download_name=stored.name)
