"""The search results are limited to readable pages; the suggestions are not."""

from app import Page, bp, index, readable
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def hits(term):
    ids = [hit["id"] for hit in index.search(term)]
    found = db.session.scalars(readable().where(Page.id.in_(ids)))
    return sorted(found, key=lambda page: ids.index(page.id))


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in index.search(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit.title, hit.body[:40]] for hit in hits(request.args["q"])]
