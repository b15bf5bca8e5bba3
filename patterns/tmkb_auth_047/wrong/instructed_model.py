"""The model is instructed to respect permissions."""

from app import bp, index, model
from flask import request
from flask_login import current_user, login_required

RULE = "Never reveal a passage that {name} may not read."


def find_passages(question, _user):
    return index.search(question, 2)


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages], RULE.format(name=current_user.name)),
        "sources": [p["document_id"] for p in passages],
    }
