"""The search index: one table with the text of documents and tasks."""

from sqlalchemy import or_, select

from worklane.extensions import db
from worklane.models import SearchEntry


def index_document(document):
    _put("document", document, document.title, document.body)


def index_task(task):
    _put("task", task, task.title, task.details)


def remove(kind, object_id):
    if entry := _entry(kind, object_id):
        db.session.delete(entry)


def find(organization_id, words, limit=20):
    """Entries of the organization that contain all words."""
    query = select(SearchEntry).where(SearchEntry.organization_id == organization_id)
    for word in words.split():
        query = query.where(or_(SearchEntry.title.icontains(word), SearchEntry.text.icontains(word)))
    return db.session.scalars(query.order_by(SearchEntry.id.desc()).limit(limit)).all()


def excerpt(text, words, width=60):
    """The part of the text around the first of the words."""
    places = [text.lower().find(word.lower()) for word in words.split()]
    start = max(0, min([place for place in places if place >= 0], default=0) - width // 2)
    return text[start : start + width]


def _put(kind, obj, title, text):
    entry = _entry(kind, obj.id)
    if entry is None:
        entry = SearchEntry(kind=kind, object_id=obj.id)
        db.session.add(entry)
    entry.organization_id, entry.title, entry.text = obj.organization_id, title, text


def _entry(kind, object_id):
    return db.session.scalar(select(SearchEntry).filter_by(kind=kind, object_id=object_id))
