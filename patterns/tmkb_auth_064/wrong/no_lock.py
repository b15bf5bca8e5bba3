"""The upload is read without a lock, so two requests find it."""

from uuid import uuid4

from app import BUCKET, MAX_SIZE, Photo, Upload, bp, own_claims, s3
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/uploads")
@login_required
def sign_upload():
    key = f"incoming/{uuid4()}"
    db.session.add(Upload(key=key, user_id=current_user.id))
    db.session.commit()
    jpg = {"Content-Type": "image/jpeg"}
    rules = [jpg, ["content-length-range", 1, MAX_SIZE]]
    return s3.generate_presigned_post(BUCKET, key, jpg, rules, ExpiresIn=300)


@bp.post("/claims/<int:claim_id>/photos")
@login_required
def add_photo(claim_id):
    claim = db.first_or_404(own_claims().filter_by(id=claim_id))
    uploads = db.select(Upload).filter_by(key=request.json["key"], user_id=current_user.id)
    upload = db.first_or_404(uploads)
    photo = Photo(claim_id=claim.id, key=f"photos/{uuid4()}")
    s3.copy_object(Bucket=BUCKET, Key=photo.key, CopySource={"Bucket": BUCKET, "Key": upload.key})
    db.session.delete(upload)
    db.session.add(photo)
    db.session.commit()
    return {"id": photo.id}, 201
