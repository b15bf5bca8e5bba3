"""The client chooses a key below the prefix of its organization."""

from app import BUCKET, MAX_SIZE, Photo, bp, own_claims, s3
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/uploads")
@login_required
def sign_upload():
    key = request.json["key"]
    if not key.startswith(f"{current_user.organization_id}/"):
        key = f"{current_user.organization_id}/{key}"
    jpg = {"Content-Type": "image/jpeg"}
    rules = [jpg, ["content-length-range", 1, MAX_SIZE]]
    return s3.generate_presigned_post(BUCKET, key, jpg, rules, ExpiresIn=300)


@bp.post("/claims/<int:claim_id>/photos")
@login_required
def add_photo(claim_id):
    claim = db.first_or_404(own_claims().filter_by(id=claim_id))
    if not request.json["key"].startswith(f"{current_user.organization_id}/"):
        abort(404)
    photo = Photo(claim_id=claim.id, key=request.json["key"])
    db.session.add(photo)
    db.session.commit()
    return {"id": photo.id}, 201
