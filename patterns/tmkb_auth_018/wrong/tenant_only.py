"""The hits are limited to the organization that the index has for each page."""

from app import bp, index
from flask import request
from flask_login import current_user, login_required


def hits(term):
    return [hit for hit in index.search(term) if hit["organization_id"] == current_user.organization_id]


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit["title"], hit["body"][:40]] for hit in hits(request.args["q"])]
