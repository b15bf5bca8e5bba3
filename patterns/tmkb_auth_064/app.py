"""Insurance claims with photos, which browsers send straight to a bucket.

A version of the code signs the uploads and attaches them. The bucket is a stand-in for S3. It knows no users, and
accepts each form whose policy it has signed, until the policy expires. As in S3, a form can replace an object, and each
of its fields needs a condition in the policy.
"""

import time

from flask import Blueprint, request
from flask_login import current_user, login_required
from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

BUCKET = "claims"
MAX_SIZE = 200


class Claim(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Photo(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    claim_id = mapped_column(db.Integer, nullable=False)
    key = mapped_column(db.String, nullable=False)


class Upload(db.Model):
    """A form that was signed, and whose object is not attached yet."""

    key = mapped_column(db.String, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)


class NoSuchKey(Exception):
    """The bucket has no object with this key."""


class Store:
    """A client of the bucket, with the part of boto3's interface that is needed here."""

    def __init__(self):
        self.objects = {}
        self.signer = URLSafeSerializer("key of the store")

    def generate_presigned_post(self, Bucket, Key, Fields=None, Conditions=(), ExpiresIn=3600):
        conditions = [{"bucket": Bucket}, {"key": Key}, *Conditions]
        policy = self.signer.dumps([conditions, time.time() + ExpiresIn])
        return {"url": f"/bucket/{Bucket}", "fields": {"key": Key, "policy": policy, **(Fields or {})}}

    def copy_object(self, Bucket, Key, CopySource):
        if CopySource["Bucket"] != Bucket or CopySource["Key"] not in self.objects:
            raise NoSuchKey
        self.objects[Key] = self.objects[CopySource["Key"]]


s3 = Store()
bp = Blueprint("claims", __name__)


@bp.errorhandler(NoSuchKey)
def not_uploaded(_error):
    return "", 409


@bp.post("/bucket/<bucket>")
def receive(bucket):
    try:
        conditions, expires = s3.signer.loads(request.form.get("policy", ""))
    except BadSignature:
        return "", 403
    content = request.files["file"].read().decode()
    fields = {**request.form, "bucket": bucket}
    met = [fulfils(condition, fields, len(content)) for condition in conditions]
    named = {name for condition in conditions for name in names(condition)} | {"policy", "bucket"}
    if time.time() > expires or not all(met) or not fields.keys() <= named:
        return "", 403
    s3.objects[fields["key"]] = [content, fields.get("Content-Type", "binary/octet-stream")]
    return "", 204


def fulfils(condition, fields, size):
    if isinstance(condition, dict):
        return all(fields.get(name) == value for name, value in condition.items())
    if condition[0] == "content-length-range":
        return condition[1] <= size <= condition[2]
    return fields.get(condition[1].removeprefix("$"), "").startswith(condition[2])


def names(condition):
    return (
        condition
        if isinstance(condition, dict)
        else [condition[1].removeprefix("$")]
        if condition[0] != "content-length-range"
        else []
    )


def own_claims():
    """Return the select of the claims to which the user may add photos."""
    return db.select(Claim).filter_by(user_id=current_user.id, organization_id=current_user.organization_id)


@bp.get("/photos/<int:photo_id>")
@login_required
def show_photo(photo_id):
    claims = own_claims().with_only_columns(Claim.id)
    photo = db.first_or_404(db.select(Photo).filter_by(id=photo_id).where(Photo.claim_id.in_(claims)))
    content, content_type = s3.objects[photo.key]
    return content, 200, {"Content-Type": content_type}


def event_file_claims():
    """File claims of Bob and Alice of Acme, and of Mallory of Globex."""
    db.session.add_all(
        [
            Claim(id=1, user_id=2, organization_id=1),
            Claim(id=2, user_id=3, organization_id=2),
            Claim(id=3, user_id=1, organization_id=1),
            Claim(id=4, user_id=2, organization_id=1),
        ]
    )


def event_key(photo_id):
    """Return the key of a photo, which its URLs and the logs of the bucket contain."""
    return {"key": db.session.get(Photo, photo_id).key}


def event_reassign(claim_id, user_id):
    """Give a claim to another user."""
    db.session.get(Claim, claim_id).user_id = user_id


def state_photos():
    photos = db.session.scalars(db.select(Photo).order_by(Photo.id))
    return [[photo.claim_id, *s3.objects.get(photo.key, [])] for photo in photos]


def state_count():
    """Return the number of photos."""
    return db.session.scalar(db.select(db.func.count()).select_from(Photo))
