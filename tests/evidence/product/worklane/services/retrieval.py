"""Passages of documents that answer a question. Terms stand in for embeddings until we have a model."""

import re

from sqlalchemy import delete, select

from worklane.extensions import db
from worklane.models import Passage

_COMMON = {
    "a",
    "an",
    "and",
    "are",
    "for",
    "how",
    "in",
    "is",
    "it",
    "of",
    "on",
    "the",
    "to",
    "what",
    "when",
    "who",
    "with",
}


def terms(text):
    return sorted({word for word in re.findall(r"\w+", text.lower()) if word not in _COMMON})


def index_document(document):
    """Replace the passages of a document."""
    remove_document(document.id)
    for paragraph in filter(None, (part.strip() for part in document.body.split("\n\n"))):
        db.session.add(
            Passage(
                organization_id=document.organization_id,
                document_id=document.id,
                text=paragraph,
                terms=terms(document.title + " " + paragraph),
            )
        )


def remove_document(document_id):
    db.session.execute(delete(Passage).where(Passage.document_id == document_id))


def nearest(organization_id, question, limit=5):
    """The passages of the organization with the most terms of the question, best first."""
    wanted = set(terms(question))
    passages = db.session.scalars(select(Passage).filter_by(organization_id=organization_id)).all()
    scored = [(len(wanted & set(passage.terms)), passage) for passage in passages]
    scored.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [passage for score, passage in scored[:limit] if score]


def summarize(question, passages):
    """An answer from the passages. The language model replaces this in production."""
    return " ".join(passage.text for passage in passages) or f"Nothing found about: {question}"
