"""Admins see all notes; their organization is not checked."""

from app import Note, bp
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_notes():
    if current_user.role == "admin":
        return db.select(Note).filter_by(deleted=False)
    readable = db.or_(~Note.private, Note.author_id == current_user.id)
    return db.select(Note).filter_by(organization_id=current_user.organization_id, deleted=False).where(readable)


@bp.get("/notes/<int:note_id>")
@login_required
def show_note(note_id):
    note = db.first_or_404(visible_notes().where(Note.id == note_id))
    return {"customer": note.customer, "text": note.text}


@bp.get("/notes")
@login_required
def list_notes():
    notes = db.session.scalars(visible_notes())
    return jsonify([{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in notes])
