"""The nearest passages of all documents are filtered after the search."""

from app import bp, index, model, readable_ids
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def find_passages(question, user):
    readable = set(db.session.scalars(readable_ids(user)))
    return [p for p in index.search(question, 2) if p["document_id"] in readable]


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages],
    }
