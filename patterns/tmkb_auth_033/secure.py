"""A link is a grant: one note, viewing or writing, until a time, unless withdrawn, while its issuer may share."""

import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class Note(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    folder_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    text = db.Column(db.String, nullable=False)


class ShareLink(db.Model):
    token = db.Column(db.String, primary_key=True)
    note_id = db.Column(db.Integer, nullable=False)
    editable = db.Column(db.Boolean, nullable=False)
    issuer_id = db.Column(db.Integer, nullable=False)
    expires_at = db.Column(db.DateTime, nullable=False)
    revoked_at = db.Column(db.DateTime)


def now():
    return datetime.now(UTC).replace(tzinfo=None)


# region example
bp = Blueprint("notes", __name__)


def own_note(note_id):
    return db.first_or_404(db.select(Note).filter_by(id=note_id, organization_id=current_user.organization_id))


@bp.post("/notes/<int:note_id>/links")
@login_required
def share(note_id):
    note, editable = own_note(note_id), request.json["editable"]
    link = ShareLink(token=secrets.token_urlsafe(), note_id=note.id, editable=editable, issuer_id=current_user.id)
    link.expires_at = now() + timedelta(days=30)
    db.session.add(link)
    db.session.commit()
    return jsonify(token=link.token), 201


@bp.delete("/notes/<int:note_id>/links")
@login_required
def stop_sharing(note_id):
    links = db.update(ShareLink).filter_by(note_id=own_note(note_id).id)
    db.session.execute(links.values(revoked_at=now()))
    db.session.commit()
    return "", 204


def linked_note(token, note_id, writing=False):
    note = db.get_or_404(Note, note_id)
    # region template
    links = db.select(ShareLink).filter_by(token=token, note_id=note_id, revoked_at=None)
    link = db.first_or_404(links.where(ShareLink.expires_at > now()))
    issuer = db.session.get(User, link.issuer_id)
    if issuer is None or issuer.organization_id != note.organization_id:
        abort(404)
    if writing and not link.editable:
        abort(403)
    # endregion
    return note


@bp.get("/shared/<token>/notes/<int:note_id>")
def show_note(token, note_id):
    return jsonify(text=linked_note(token, note_id).text)


@bp.put("/shared/<token>/notes/<int:note_id>")
def write_note(token, note_id):
    note = linked_note(token, note_id, writing=True)
    note.text = request.json["text"]
    db.session.commit()
    return "", 204


# endregion
