"""Suggestions and search results are returned as the index has them."""

from app import bp, index
from flask import request
from flask_login import login_required


# region example
def hits(term):
    return index.search(term)


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit["title"], hit["body"][:40]] for hit in hits(request.args["q"])]


# endregion
