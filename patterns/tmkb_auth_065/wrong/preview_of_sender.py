"""Link previews are made with the permissions of the sender of the message."""

from app import Rendition, Scan, bp, can_read, messages_of
from flask import Response, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def renditions(user=current_user):
    source = db.and_(Scan.id == Rendition.scan_id, Scan.revision == Rendition.revision)
    return db.select(Rendition).join(Scan, source).where(can_read(user))


@bp.get("/renditions/<key>")
@login_required
def show_rendition(key):
    rendition = db.first_or_404(renditions().where(Rendition.key == key))
    return Response(rendition.content, mimetype="text/plain")


@bp.get("/scans/<int:scan_id>/renditions")
@login_required
def list_renditions(scan_id):
    found = db.session.scalars(renditions().where(Rendition.scan_id == scan_id))
    return jsonify([{"key": rendition.key, "kind": rendition.kind} for rendition in found])


def preview(message):
    of_scan = renditions(db.session.get(User, message.sender_id)).where(
        Rendition.scan_id == message.scan_id, Rendition.kind == "thumbnail"
    )
    thumbnail = db.session.scalars(of_scan).first()
    return thumbnail and thumbnail.content


@bp.get("/messages")
@login_required
def list_messages():
    return jsonify([{"text": message.text, "preview": preview(message)} for message in messages_of(current_user)])
