"""Keys are made by the server, and a file is found through a record of the caller's, under their prefix."""

from pathlib import Path
from uuid import uuid4

from flask import Blueprint, abort, current_app, jsonify, request, send_file
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class StoredFile(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    key = db.Column(db.String, nullable=False)
    name = db.Column(db.String, nullable=False)
    owner_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("files", __name__)


def uploads():
    return Path(current_app.config["UPLOADS"]).resolve()


@bp.post("/files")
@login_required
def upload_file():
    upload = request.files["file"]
    prefix = str(current_user.organization_id)
    key = f"{prefix}/{uuid4().hex}"
    (uploads() / prefix).mkdir(exist_ok=True)
    upload.save(uploads() / key)
    db.session.add(StoredFile(key=key, name=upload.filename, owner_id=current_user.id))
    db.session.commit()
    return jsonify(key=key), 201


@bp.get("/files/<path:key>")
@login_required
def download_file(key):
    # region template
    stored = db.first_or_404(db.select(StoredFile).filter_by(key=key, owner_id=current_user.id))
    path = (uploads() / stored.key).resolve()
    if not path.is_relative_to(uploads() / str(current_user.organization_id)):
        abort(404)
    return send_file(path, download_name=stored.name)
    # endregion


# endregion
