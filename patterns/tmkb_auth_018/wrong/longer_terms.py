"""A search needs at least three letters, so that nobody can guess; the hits are not limited."""

from app import bp, index
from flask import request
from flask_login import login_required


def hits(term):
    return index.search(term) if len(term) >= 3 else []


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit["title"], hit["body"][:40]] for hit in hits(request.args["q"])]
