"""Any link opens every note in the folder, for reading and writing, and never ends."""

from app import Note, ShareLink, bp
from flask import abort, request

from tmkb.authoring.proofs.stage import db


# region example
def link_to(note, token):
    link = db.get_or_404(ShareLink, token)
    if db.session.get(Note, link.note_id).folder_id != note.folder_id:
        abort(404)
    return link


@bp.get("/shared/<token>/notes/<int:note_id>")
def show_note(token, note_id):
    note = db.get_or_404(Note, note_id)
    link_to(note, token)
    return {"text": note.text}


@bp.put("/shared/<token>/notes/<int:note_id>")
def write_note(token, note_id):
    note = db.get_or_404(Note, note_id)
    link_to(note, token)
    note.text = request.get_json()["text"]
    db.session.commit()
    return "", 204


# endregion
