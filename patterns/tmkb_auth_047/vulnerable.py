"""The search covers the passages of all documents, and the nearest ones are put into the prompt."""

from app import bp, index, model
from flask import request
from flask_login import current_user, login_required


# region example
def find_passages(question, _user):
    return index.search(question, 2)


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
