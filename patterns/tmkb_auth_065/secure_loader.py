"""One function loads the scan of a rendition as the page of the scan does, and then compares the revision."""

from app import Rendition, Scan, bp, can_read, messages_of
from flask import Response, abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def readable_scan(scan_id):
    return db.session.scalar(db.select(Scan).where(Scan.id == scan_id, can_read(current_user)))


def renditions_of(scan):
    if scan is None:
        return []
    return db.session.scalars(db.select(Rendition).filter_by(scan_id=scan.id, revision=scan.revision)).all()


@bp.get("/renditions/<key>")
@login_required
def show_rendition(key):
    rendition = db.get_or_404(Rendition, key)
    if rendition not in renditions_of(readable_scan(rendition.scan_id)):
        abort(404)
    return Response(rendition.content, mimetype="text/plain")


@bp.get("/scans/<int:scan_id>/renditions")
@login_required
def list_renditions(scan_id):
    found = renditions_of(readable_scan(scan_id))
    return jsonify([{"key": rendition.key, "kind": rendition.kind} for rendition in found])


def preview(message):
    contents = {rendition.kind: rendition.content for rendition in renditions_of(readable_scan(message.scan_id))}
    return contents.get("thumbnail")


@bp.get("/messages")
@login_required
def list_messages():
    return jsonify([{"text": message.text, "preview": preview(message)} for message in messages_of(current_user)])


# endregion
