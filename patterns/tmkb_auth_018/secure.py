"""The index finds ids, and the database returns the pages among them that the user may open."""

from app import Page, bp, index, readable
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def hits(term):
    ids = [hit["id"] for hit in index.search(term)]
    pages = db.session.scalars(readable().where(Page.id.in_(ids)))
    return sorted(pages, key=lambda page: ids.index(page.id))  # by relevance


@bp.get("/suggest")
@login_required
def suggest():
    return [page.title for page in hits(request.args["q"])]


# endregion


@bp.get("/search")
@login_required
def search():
    return [[page.title, page.body[:40]] for page in hits(request.args["q"])]


# endregion
