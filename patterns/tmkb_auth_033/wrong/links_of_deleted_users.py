"""The join refuses the links of deleted users until somebody gets the same id."""

from datetime import UTC, datetime

from app import Note, ShareLink, bp
from flask import abort, request

from tmkb.authoring.proofs.stage import User, db


def link_to(note, token):
    links = db.select(ShareLink).filter_by(token=token, note_id=note.id, revoked_at=None)
    links = links.join(User, User.id == ShareLink.issuer_id).where(User.organization_id == note.organization_id)
    return db.first_or_404(links.where(ShareLink.expires_at > datetime.now(UTC)))


@bp.get("/shared/<token>/notes/<int:note_id>")
def show_note(token, note_id):
    note = db.get_or_404(Note, note_id)
    link_to(note, token)
    return {"text": note.text}


@bp.put("/shared/<token>/notes/<int:note_id>")
def write_note(token, note_id):
    note = db.get_or_404(Note, note_id)
    if not link_to(note, token).editable:
        abort(403)
    note.text = request.get_json()["text"]
    db.session.commit()
    return "", 204
