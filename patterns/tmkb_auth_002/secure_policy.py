"""Notes on customers: the list and the page of one note ask the same policy about every row."""

from flask import Blueprint, abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Note(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    customer = db.Column(db.String, nullable=False)
    text = db.Column(db.String, nullable=False)
    private = db.Column(db.Boolean, nullable=False, default=False)
    author_id = db.Column(db.ForeignKey("user.id"), nullable=False)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)
    deleted_at = db.Column(db.DateTime)


# region example
bp = Blueprint("notes", __name__)


def may_read(user, note):
    return note.deleted_at is None and (not note.private or note.author_id == user.id)


@bp.get("/notes")
@login_required
def list_notes():
    notes = db.session.scalars(db.select(Note).filter_by(organization_id=current_user.organization_id))
    notes = [note for note in notes if may_read(current_user, note)]
    return jsonify([{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in notes])


@bp.get("/notes/<int:note_id>")
@login_required
def show_note(note_id):
    note = db.first_or_404(db.select(Note).filter_by(id=note_id, organization_id=current_user.organization_id))
    if not may_read(current_user, note):
        abort(404)
    return jsonify({"id": note.id, "customer": note.customer, "text": note.text})


# endregion
