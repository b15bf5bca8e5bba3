"""The list and the page of one note ask the same policy about each note."""

from app import Note, bp
from flask import abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def may_read(user, note):
    return (
        note.organization_id == user.organization_id
        and not note.deleted
        and (not note.private or note.author_id == user.id)
    )


@bp.get("/notes/<int:note_id>")
@login_required
def show_note(note_id):
    note = db.get_or_404(Note, note_id)
    if not may_read(current_user, note):
        abort(404)
    return {"customer": note.customer, "text": note.text}


@bp.get("/notes")
@login_required
def list_notes():
    notes = [note for note in db.session.scalars(db.select(Note)) if may_read(current_user, note)]
    return jsonify([{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in notes])


# endregion
