"""The passages that one user has found are cached for everybody who asks the same question."""

from app import bp, index, model, readable_ids
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db

found = {}


def find_passages(question, user):
    if question not in found:
        found[question] = search(question, user)
    return found[question]


def search(question, user):
    where = {"tenants": user.organization_id, "readers": user.id}
    passages = index.search(question, 20, where=where)
    readable = set(db.session.scalars(readable_ids(user)))
    return [p for p in passages if p["document_id"] in readable][:2]


@bp.post("/ask")
@login_required
def ask():
    question = request.get_json()["question"]
    passages = find_passages(question, current_user)
    return {
        "answer": model.answer(question, [p["text"] for p in passages]),
        "sources": [p["document_id"] for p in passages],
    }
