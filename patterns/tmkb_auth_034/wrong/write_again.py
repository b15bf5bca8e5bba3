"""The upload has a new key and two minutes, in which it can be repeated with other content."""

from uuid import uuid4

from app import BUCKET, File, bp, s3
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def download_url(key):
    files = db.select(File).filter_by(organization_id=current_user.organization_id, deleted_at=None)
    file = db.first_or_404(files.filter_by(key=key))
    params = {"Bucket": BUCKET, "Key": file.key, "ResponseContentDisposition": "attachment"}
    return s3.generate_presigned_url("get_object", params, ExpiresIn=120)


@bp.get("/files/url")
@login_required
def sign_download():
    return {"url": download_url(request.args["key"])}


@bp.post("/files")
@login_required
def sign_upload():
    key, name = f"{current_user.organization_id}/{uuid4()}", request.get_json()["name"]
    db.session.add(File(key=key, name=name, organization_id=current_user.organization_id))
    db.session.commit()
    params = {"Bucket": BUCKET, "Key": key}
    return {"key": key, "url": s3.generate_presigned_url("put_object", params, ExpiresIn=120)}, 201
