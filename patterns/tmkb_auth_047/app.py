"""Documents with readers, a vector index and a language model. A version of the code answers questions with them."""

import re
from datetime import UTC, datetime

from flask import Blueprint
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class IndexedDocument(db.Model):
    """A document whose id is never used again, because the index can still have its passages."""

    __table_args__ = ({"sqlite_autoincrement": True},)
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    deleted_at = mapped_column(db.DateTime)


class Reader(db.Model):
    document_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)


class Index:
    """A vector index that counts common words and applies filters before it ranks."""

    def __init__(self):
        self.passages = []

    def search(self, question, limit, where=None, among=None):
        """Return the nearest passages: with the values of ``where`` in their metadata, of the documents ``among``."""
        words = set(re.findall(r"\w+", str(question).lower()))
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
    query = db.select(IndexedDocument.id).join(Reader, Reader.document_id == IndexedDocument.id)
    query = query.where(Reader.user_id == user.id, IndexedDocument.organization_id == user.organization_id)
    return query.where(IndexedDocument.deleted_at.is_(None))


@bp.get("/documents/<int:document_id>")
@login_required
def show(document_id):
    return {"id": db.first_or_404(readable_ids(current_user).where(IndexedDocument.id == document_id))}


def event_add(document_id, organization_id, text, readers):
    """Store a document, and index it with the readers that it has now."""
    users = db.session.scalars(db.select(User).where(User.name.in_(readers))).all()
    db.session.merge(IndexedDocument(id=document_id, title=text.split(":")[0], organization_id=organization_id))
    db.session.add_all([Reader(document_id=document_id, user_id=user.id) for user in users])
    index.passages.append(
        {
            "document_id": document_id,
            "tenants": [organization_id],
            "readers": [user.id for user in users],
            "text": text,
        }
    )


def event_create(title, organization_id, readers):
    """Store a document with the next id that the database gives, and do not index it yet."""
    document = IndexedDocument(title=title, organization_id=organization_id)
    db.session.add(document)
    db.session.flush()
    users = db.session.scalars(db.select(User).where(User.name.in_(readers))).all()
    db.session.add_all([Reader(document_id=document.id, user_id=user.id) for user in users])
    return document.id


def event_unshare(document_id, user_id):
    db.session.delete(db.session.get(Reader, (document_id, user_id)))


def event_move(document_id, organization_id):
    db.session.get(IndexedDocument, document_id).organization_id = organization_id


def event_trash(document_id):
    db.session.get(IndexedDocument, document_id).deleted_at = datetime.now(UTC)


def event_purge(document_id):
    db.session.execute(db.delete(Reader).filter_by(document_id=document_id))
    db.session.delete(db.session.get(IndexedDocument, document_id))
