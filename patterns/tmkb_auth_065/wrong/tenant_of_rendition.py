"""Renditions carry the organization of their scan, and readers are limited to theirs."""

from app import Rendition, bp, messages_of
from flask import Response, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def renditions():
    return db.select(Rendition).filter_by(organization_id=current_user.organization_id)


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
    of_scan = renditions().where(Rendition.scan_id == message.scan_id, Rendition.kind == "thumbnail")
    thumbnail = db.session.scalars(of_scan).first()
    return thumbnail and thumbnail.content


@bp.get("/messages")
@login_required
def list_messages():
    return jsonify([{"text": message.text, "preview": preview(message)} for message in messages_of(current_user)])
