"""The response hides the sources that the user may not open, but not what they say."""

from app import bp, index, model, readable_ids
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def find_passages(question, _user):
    return index.search(question, 2)


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    readable = set(db.session.scalars(readable_ids(current_user)))
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages if p["document_id"] in readable],
    }
