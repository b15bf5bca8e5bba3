"""The search covers the documents that name the user in the table of readers."""

from app import Reader, bp, index, model
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def find_passages(question, user):
    shared = db.select(Reader.document_id).filter_by(user_id=user.id)
    return index.search(question, 2, among=set(db.session.scalars(shared)))


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages],
    }
