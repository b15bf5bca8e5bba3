"""A link was made for viewing one note; whoever has its token opens the whole folder and writes, for ever."""

import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


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


def linked_note(token, note_id):
    link = db.get_or_404(ShareLink, token)
    folder = db.select(Note.folder_id).filter_by(id=link.note_id).scalar_subquery()
    return db.first_or_404(db.select(Note).filter_by(id=note_id, folder_id=folder))


@bp.get("/shared/<token>/notes/<int:note_id>")
def show_note(token, note_id):
    return jsonify(text=linked_note(token, note_id).text)


@bp.put("/shared/<token>/notes/<int:note_id>")
def write_note(token, note_id):
    note = linked_note(token, note_id)
    note.text = request.json["text"]
    db.session.commit()
    return "", 204


# endregion
