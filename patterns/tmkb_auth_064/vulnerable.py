"""The client chooses key, type and size of an upload, and names the key that becomes a photo."""

from app import BUCKET, Photo, bp, own_claims, s3
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/uploads")
@login_required
def sign_upload():
    key = request.json["key"]
    rules = [["starts-with", "$Content-Type", ""]]
    return s3.generate_presigned_post(BUCKET, key, {"Content-Type": request.json["type"]}, rules, ExpiresIn=300)


@bp.post("/claims/<int:claim_id>/photos")
@login_required
def add_photo(claim_id):
    claim = db.first_or_404(own_claims().filter_by(id=claim_id))
    photo = Photo(claim_id=claim.id, key=request.json["key"])
    db.session.add(photo)
    db.session.commit()
    return {"id": photo.id}, 201


# endregion
