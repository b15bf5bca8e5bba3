"""Pages are open to their readers only; their text is copied into an index that knows nothing of readers."""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Page(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    title = db.Column(db.String, nullable=False)
    body = db.Column(db.String, nullable=False)
    readers = db.Column(db.JSON, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


class Index:
    """Stands for a search engine: entries of plain fields, found by how a word begins, narrowed by filters."""

    def __init__(self):
        self.entries = {}

    def put(self, entry_id, entry):
        self.entries[entry_id] = {**entry, "id": entry_id}

    def search(self, term, **filters):
        """Entries with such a word whose fields equal, or contain, the values of the filters."""
        return [
            entry
            for entry in self.entries.values()
            if any(word.lower().startswith(term.lower()) for word in f"{entry['title']} {entry['body']}".split())
            and all(value == entry.get(field) or value in as_list(entry.get(field)) for field, value in filters.items())
        ]


def as_list(value):
    return value if isinstance(value, list) else []


# region example
bp = Blueprint("pages", __name__)
index = Index()


def readable(actor):
    pages = db.session.scalars(db.select(Page).filter_by(organization_id=actor.organization_id))
    return {page.id: page for page in pages if actor.id in page.readers}


def index_page(page):
    index.put(page.id, {"title": page.title, "body": page.body})


@bp.get("/pages/<int:page_id>")
@login_required
def show_page(page_id):
    page = readable(current_user).get(page_id) or abort(404)
    return jsonify(page.body)


@bp.put("/pages/<int:page_id>/readers")
@login_required
def set_readers(page_id):
    page = readable(current_user).get(page_id) or abort(404)
    page.readers = request.json["readers"]
    db.session.commit()
    return "", 204


@bp.get("/suggest")
@login_required
def suggest():
    return jsonify([hit["title"] for hit in index.search(request.args["q"])])


@bp.get("/search")
@login_required
def search():
    return jsonify([[hit["title"], hit["body"][:40]] for hit in index.search(request.args["q"])])


# endregion
