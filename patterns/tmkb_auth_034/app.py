"""Files of organizations in a bucket that all of them share.

The bucket is a stand-in for S3: it honors each valid signature until it expires and knows no users. It sends
`Content-Disposition: inline` where S3 sends no such header. It honors a signed `If-None-Match: *`, as S3 does. Nothing
depends on the signature of one provider.
"""

import time
from urllib.parse import urlencode

from flask import Blueprint, request
from flask_login import current_user, login_required
from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

BUCKET = "files"
OPERATIONS = {"GET": "get_object", "PUT": "put_object"}


class File(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    key = mapped_column(db.String, nullable=False)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    deleted_at = mapped_column(db.DateTime)


class Store:
    """A client of the bucket, with the part of boto3's interface that is needed here."""

    def __init__(self):
        self.objects = {}
        self.signer = URLSafeSerializer("key of the store")

    def generate_presigned_url(self, operation, Params, ExpiresIn):
        signature = self.signer.dumps([operation, Params, time.time() + ExpiresIn])
        return f"/bucket/{Params['Key']}?{urlencode({'X-Amz-Signature': signature})}"


s3 = Store()
bp = Blueprint("files", __name__)


@bp.route("/bucket/<path:key>", methods=["GET", "PUT"])
def bucket(key):
    try:
        operation, params, expires = s3.signer.loads(request.args.get("X-Amz-Signature", ""))
    except BadSignature:
        return "", 403
    if OPERATIONS.get(request.method) != operation or params["Key"] != key or time.time() > expires:
        return "", 403
    if operation == "put_object":
        if "IfNoneMatch" in params and request.headers.get("If-None-Match") != params["IfNoneMatch"]:
            return "", 403
        if params.get("IfNoneMatch") == "*" and key in s3.objects:
            return "", 412
        s3.objects[key] = request.get_data(as_text=True)
        return "", 200
    return s3.objects[key], 200, {"Content-Disposition": params.get("ResponseContentDisposition", "inline")}


@bp.get("/files")
@login_required
def list_files():
    files = db.select(File).filter_by(organization_id=current_user.organization_id, deleted_at=None)
    return [{"key": file.key, "name": file.name} for file in db.session.scalars(files)]


def event_store(key, organization_id, content):
    """Store a file as it is after an upload."""
    db.session.add(File(key=key, name=key.split("/")[1], organization_id=organization_id))
    s3.objects[key] = content


def event_delete(key):
    """Mark a file as deleted, which leaves its object in the bucket until the nightly cleanup."""
    db.session.execute(db.update(File).filter_by(key=key).values(deleted_at=db.func.now()))


def event_give(key, organization_id):
    """Give a file to another organization, which leaves its object where it is."""
    db.session.execute(db.update(File).filter_by(key=key).values(organization_id=organization_id))


def event_signature(url):
    """Return the query of a URL."""
    return url.partition("?")[2]


def state_contents():
    """Return the contents of the files that are there from the beginning."""
    return [s3.objects[key] for key in ("1/contract.pdf", "1/page.html", "2/contract.pdf")]
