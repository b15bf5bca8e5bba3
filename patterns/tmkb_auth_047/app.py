"""Documents with readers, a vector index and a language model. A version of the code answers questions with them."""

import re
from datetime import UTC, datetime

from flask import Blueprint
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Document, User, db


class Reader(db.Model):
    document_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)


class Index:
    """A vector index that counts common words and applies filters before it ranks."""

    def __init__(self):
        self.passages = []

    def search(self, question, limit, where=None, among=None):
        """Return the nearest passages: with the values of ``where`` in their metadata, of the documents ``among``."""
        words = set(re.findall(r"\w+", question.lower()))
        found = [p for p in self.passages if all(value in p[key] for key, value in (where or {}).items())]
        if among is not None:
            found = [p for p in found if p["document_id"] in among]
        found.sort(key=lambda p: -len(words & set(re.findall(r"\w+", p["text"].lower()))))
        return found[:limit]


class Model:
    """A language model that repeats all passages of its prompt, whatever the instructions are."""

    def answer(self, question, passages, instructions=""):
        prompt = [instructions, *passages, question]
        return " ".join(prompt[1:-1]) or "I do not know."


index, model = Index(), Model()
bp = Blueprint("assistant", __name__)


def readable_ids(user):
    """Return the query for the ids of the documents that ``user`` may open now."""
    query = db.select(Document.id).join(Reader, Reader.document_id == Document.id)
    return query.where(
        Reader.user_id == user.id, Document.organization_id == user.organization_id, Document.deleted_at.is_(None)
    )


@bp.get("/documents/<int:document_id>")
@login_required
def show(document_id):
    return {"id": db.first_or_404(readable_ids(current_user).where(Document.id == document_id))}


def event_add(document_id, organization_id, text, readers):
    """Store a document, and index it with the readers that it has now."""
    users = db.session.scalars(db.select(User).where(User.name.in_(readers))).all()
    db.session.merge(Document(id=document_id, title=text.split(":")[0], owner_id=1, organization_id=organization_id))
    db.session.add_all([Reader(document_id=document_id, user_id=user.id) for user in users])
    index.passages.append(
        {
            "document_id": document_id,
            "tenants": [organization_id],
            "readers": [user.id for user in users],
            "text": text,
        }
    )


def event_unshare(document_id, user_id):
    db.session.delete(db.session.get(Reader, (document_id, user_id)))


def event_move(document_id, organization_id):
    db.session.get(Document, document_id).organization_id = organization_id


def event_trash(document_id):
    db.session.get(Document, document_id).deleted_at = datetime.now(UTC)


def event_purge(document_id):
    db.session.delete(db.session.get(Document, document_id))
