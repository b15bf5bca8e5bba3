"""Only the page of one note has all conditions."""

from app import Note, bp
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_notes():
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
    readable = db.or_(~Note.private, Note.author_id == current_user.id)
    notes = db.session.scalars(db.select(Note).filter_by(organization_id=current_user.organization_id).where(readable))
    return jsonify([{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in notes])
