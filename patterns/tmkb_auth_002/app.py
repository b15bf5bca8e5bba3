"""Notes on customers, which may be private. A version of the code lists and shows them."""

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Note(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    customer = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)
    private = mapped_column(db.Boolean, nullable=False)
    deleted = mapped_column(db.Boolean, nullable=False, default=False)
    author_id = mapped_column(db.ForeignKey("user.id"), nullable=False)
    organization_id = mapped_column(db.ForeignKey("organization.id"), nullable=False)


bp = Blueprint("notes", __name__)


@bp.post("/notes")
@login_required
def create_note():
    body = request.get_json()
    note = Note(
        customer=body["customer"],
        text=body["text"],
        private=body["private"],
        author_id=current_user.id,
        organization_id=current_user.organization_id,
    )
    db.session.add(note)
    db.session.commit()
    return {"id": note.id}, 201


def own_note_or_404(note_id):
    return db.first_or_404(
        db.select(Note).filter_by(
            id=note_id, author_id=current_user.id, organization_id=current_user.organization_id, deleted=False
        )
    )


@bp.put("/notes/<int:note_id>/private")
@login_required
def make_private(note_id):
    note = own_note_or_404(note_id)
    note.private = True
    db.session.commit()
    return "", 204


@bp.delete("/notes/<int:note_id>")
@login_required
def delete_note(note_id):
    note = own_note_or_404(note_id)
    note.deleted = True
    db.session.commit()
    return "", 204
