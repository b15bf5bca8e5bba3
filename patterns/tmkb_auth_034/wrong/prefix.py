"""A key is signed when it begins with the id of the user's organization."""

from uuid import uuid4

from app import BUCKET, File, bp, s3
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def download_url(key):
    params = {"Bucket": BUCKET, "Key": key, "ResponseContentDisposition": "attachment"}
    return s3.generate_presigned_url("get_object", params, ExpiresIn=120)


@bp.get("/files/url")
@login_required
def sign_download():
    if not request.args["key"].startswith(f"{current_user.organization_id}/"):
        abort(404)
    return {"url": download_url(request.args["key"])}


@bp.post("/files")
@login_required
def sign_upload():
    key, name = request.get_json()["key"], request.get_json()["name"]
    if not key.startswith(f"{current_user.organization_id}/"):
        key = f"{current_user.organization_id}/{uuid4()}"
    db.session.add(File(key=key, name=name, organization_id=current_user.organization_id))
    db.session.commit()
    params = {"Bucket": BUCKET, "Key": key}
    return {"key": key, "url": s3.generate_presigned_url("put_object", params, ExpiresIn=120)}, 201
