"""The client's file name becomes a part of the storage key, and whoever can say a key gets the file."""

from pathlib import Path

from flask import Blueprint, current_app, jsonify, request, send_from_directory
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
    key = f"{prefix}/{upload.filename}"
    (uploads() / prefix).mkdir(exist_ok=True)
    upload.save(uploads() / key)
    db.session.add(StoredFile(key=key, name=upload.filename, owner_id=current_user.id))
    db.session.commit()
    return jsonify(key=key), 201


@bp.get("/files/<path:key>")
@login_required
def download_file(key):
    return send_from_directory(uploads(), key)


# endregion
