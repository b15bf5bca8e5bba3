"""Pages with readers, and a search index that contains their text. A version of the code searches the index.

The index stands for a search engine. It is updated when a page gets text or readers, and not when a reader is removed
or a page is deleted.
"""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Page(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    body = mapped_column(db.String, nullable=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Reader(db.Model):
    page_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)


class Index:
    """Entries of plain fields, which are found by the beginning of a word and can be filtered by fields."""

    def __init__(self):
        self.entries = {}

    def put(self, page):
        readers = db.session.scalars(db.select(Reader.user_id).filter_by(page_id=page.id)).all()
        self.entries[page.id] = {
            "id": page.id,
            "title": page.title,
            "body": page.body,
            "organization_id": page.organization_id,
            "readers": readers,
        }

    def search(self, term):
        return [
            entry
            for entry in self.entries.values()
            if any(word.lower().startswith(term.lower()) for word in f"{entry['title']} {entry['body']}".split())
        ]


bp = Blueprint("pages", __name__)
index = Index()


def readable():
    """Select the pages that the current user may open."""
    shared = db.select(Reader.page_id).filter_by(user_id=current_user.id)
    return db.select(Page).filter_by(organization_id=current_user.organization_id).where(Page.id.in_(shared))


def own_page(page_id):
    page = db.first_or_404(readable().filter_by(id=page_id))
    return page if page.owner_id == current_user.id else abort(403)


@bp.get("/pages/<int:page_id>")
@login_required
def show_page(page_id):
    return jsonify(db.first_or_404(readable().filter_by(id=page_id)).body)


@bp.put("/pages/<int:page_id>/readers")
@login_required
def set_readers(page_id):
    page = own_page(page_id)
    colleagues = db.select(User.id).filter_by(organization_id=current_user.organization_id)
    readers = {current_user.id, *request.get_json()["readers"]}
    if not readers <= set(db.session.scalars(colleagues)):
        abort(400)
    before = set(db.session.scalars(db.select(Reader.user_id).filter_by(page_id=page.id)))
    db.session.execute(db.delete(Reader).filter_by(page_id=page.id))
    db.session.add_all(Reader(page_id=page.id, user_id=user_id) for user_id in readers)
    db.session.commit()
    if readers - before:
        index.put(page)
    return "", 204


@bp.delete("/pages/<int:page_id>")
@login_required
def delete_page(page_id):
    db.session.delete(own_page(page_id))
    db.session.commit()
    return "", 204


def event_write(id, title, body, readers, organization_id):
    page = Page(id=id, title=title, body=body, owner_id=readers[0], organization_id=organization_id)
    db.session.add(page)
    db.session.add_all(Reader(page_id=id, user_id=user_id) for user_id in readers)
    db.session.flush()
    index.put(page)


def event_move_page(id, organization_id):
    db.session.get(Page, id).organization_id = organization_id


def state_readers():
    readers = db.session.scalars(db.select(Reader).order_by(Reader.page_id, Reader.user_id))
    return [[reader.page_id, reader.user_id] for reader in readers]
