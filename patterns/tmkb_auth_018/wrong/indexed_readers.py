"""The hits are filtered by the organization and the readers in the index, which is updated only with the text."""

from app import bp, index
from flask import request
from flask_login import current_user, login_required


def hits(term):
    own = [hit for hit in index.search(term) if hit["organization_id"] == current_user.organization_id]
    return [hit for hit in own if current_user.id in hit["readers"]]


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit["title"], hit["body"][:40]] for hit in hits(request.args["q"])]
