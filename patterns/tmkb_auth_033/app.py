"""Notes of organizations in folders. A link opens a note without an account; a version of the code resolves links."""

import secrets
from datetime import UTC, datetime, timedelta

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Note(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    folder_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)


class ShareLink(db.Model):
    token = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    note_id = mapped_column(db.Integer, nullable=False)
    editable = mapped_column(db.Boolean, nullable=False)
    issuer_id = mapped_column(db.Integer, nullable=False)
    expires_at = mapped_column(db.DateTime(timezone=True), nullable=False)
    revoked_at = mapped_column(db.DateTime(timezone=True))


bp = Blueprint("notes", __name__)


def own_note(note_id):
    return db.first_or_404(db.select(Note).filter_by(id=note_id, organization_id=current_user.organization_id))


@bp.post("/notes")
@login_required
def create_note():
    values = request.get_json()
    note = Note(folder_id=values["folder"], text=values["text"], organization_id=current_user.organization_id)
    db.session.add(note)
    db.session.commit()
    return {"id": note.id}, 201


@bp.post("/notes/<int:note_id>/links")
@login_required
def share(note_id):
    editable = request.get_json().get("editable") is True
    link = ShareLink(note_id=own_note(note_id).id, editable=editable, issuer_id=current_user.id)
    link.expires_at = datetime.now(UTC) + timedelta(days=30)
    db.session.add(link)
    db.session.commit()
    return {"token": link.token}, 201


@bp.delete("/notes/<int:note_id>/links")
@login_required
def stop_sharing(note_id):
    links = db.update(ShareLink).filter_by(note_id=own_note(note_id).id)
    db.session.execute(links.values(revoked_at=datetime.now(UTC)))
    db.session.commit()
    return "", 204


def event_hire(user):
    """Add a user to Acme."""
    db.session.add(User(name=user, organization_id=1))


def event_give(note, organization_id):
    """Give a note to another organization."""
    db.session.get(Note, note).organization_id = organization_id


def state_notes():
    return [[note.folder_id, note.text] for note in db.session.scalars(db.select(Note).order_by(Note.id))]


def state_links():
    links = db.session.scalars(db.select(ShareLink).order_by(ShareLink.token))
    return [[link.token, link.editable, link.revoked_at is None] for link in links]
