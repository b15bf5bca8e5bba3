"""The excerpt is left out for pages that the user may not open; the title is shown."""

from app import Page, bp, index, readable
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def hits(term):
    ids = set(db.session.scalars(readable().with_only_columns(Page.id)))
    return [hit if hit["id"] in ids else {**hit, "body": ""} for hit in index.search(term)]


@bp.get("/suggest")
@login_required
def suggest():
    return [hit["title"] for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit["title"], hit["body"][:40]] for hit in hits(request.args["q"])]
