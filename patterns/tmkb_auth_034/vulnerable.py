"""Any signed-in user gets a URL that is valid for a week, for any key in the bucket, for download and upload."""

from app import BUCKET, File, bp, s3
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def download_url(key):
    params = {"Bucket": BUCKET, "Key": key}
    return s3.generate_presigned_url("get_object", params, ExpiresIn=7 * 24 * 3600)


@bp.get("/files/url")
@login_required
def sign_download():
    return {"url": download_url(request.args["key"])}


@bp.post("/files")
@login_required
def sign_upload():
    key, name = request.get_json()["key"], request.get_json()["name"]
    db.session.add(File(key=key, name=name, organization_id=current_user.organization_id))
    db.session.commit()
    params = {"Bucket": BUCKET, "Key": key}
    return {"key": key, "url": s3.generate_presigned_url("put_object", params, ExpiresIn=7 * 24 * 3600)}, 201


# endregion
