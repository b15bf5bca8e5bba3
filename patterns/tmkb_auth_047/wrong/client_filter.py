"""The client sends the filter of the search."""

from app import bp, index, model
from flask import request
from flask_login import current_user, login_required


def find_passages(question, user):
    where = {"tenants": user.organization_id, "readers": user.id}
    return index.search(question, 2, where={**where, **request.get_json().get("where", {})})


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages],
    }
