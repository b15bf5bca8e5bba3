"""The search is limited to the user's tenant and documents, and each source is checked again before the prompt."""

from app import bp, index, model, readable_ids
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def find_passages(question, user):
    where = {"tenants": user.organization_id, "readers": user.id}
    passages = index.search(question, 20, where=where)
    # readable_ids is the rule that also opens documents
    readable = set(db.session.scalars(readable_ids(user)))
    return [p for p in passages if p["document_id"] in readable][:2]


# endregion


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
