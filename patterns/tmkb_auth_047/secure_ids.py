"""The search covers only the documents that the user may read now."""

from app import bp, index, model, readable_ids
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def find_passages(question, user):
    return index.search(question, 2, among=set(db.session.scalars(readable_ids(user))))


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages],
    }


# endregion
