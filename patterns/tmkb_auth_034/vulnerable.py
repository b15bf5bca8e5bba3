"""The list is limited to the caller's organization; the signer signs any key, any operation, and for a week."""

from flask import Blueprint, jsonify, request
from flask_login import current_user, login_required
from itsdangerous import URLSafeSerializer

from tmkb.authoring.proofs.stage import db


class Attachment(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    key = db.Column(db.String, nullable=False, unique=True)
    organization_id = db.Column(db.Integer, nullable=False)


class ObjectStore:
    """Keeps what it has signed until it expires, and knows no users, like a bucket and its client."""

    def __init__(self):
        self.objects, self.clock, self.signer = {}, 0, URLSafeSerializer("key of the store")

    def generate_presigned_url(self, operation, Params, ExpiresIn):
        return "https://store.example/" + self.signer.dumps([operation, Params, self.clock + ExpiresIn])

    def request(self, operation, url, body=None):
        signed_operation, params, expires = self.signer.loads(url.rsplit("/", 1)[1])
        if operation != signed_operation or self.clock > expires:
            return 403, None, None
        if operation == "put_object":
            self.objects[params["Key"]] = body
        return 200, params.get("ResponseContentDisposition"), self.objects[params["Key"]]


s3 = ObjectStore()


# region example
bp = Blueprint("attachments", __name__)


def readable(actor):
    return db.select(Attachment).filter_by(organization_id=actor.organization_id)


@bp.get("/attachments")
@login_required
def list_attachments():
    return jsonify([attachment.key for attachment in db.session.scalars(readable(current_user))])


@bp.get("/attachments/url")
@login_required
def attachment_url():
    url = s3.generate_presigned_url(
        request.args.get("operation", "get_object"),
        Params={
            "Bucket": "attachments",
            "Key": request.args["key"],
        },
        ExpiresIn=7 * 24 * 3600,
    )
    return jsonify(url=url)


# endregion
