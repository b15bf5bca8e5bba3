"""Administrators find every page of their organization, although they may not open them."""

from app import Page, bp, index, readable
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def hits(term):
    ids = [hit["id"] for hit in index.search(term)]
    pages = readable()
    if current_user.role == "admin":
        pages = db.select(Page).filter_by(organization_id=current_user.organization_id)
    found = db.session.scalars(pages.where(Page.id.in_(ids)))
    return sorted(found, key=lambda page: ids.index(page.id))


@bp.get("/suggest")
@login_required
def suggest():
    return [hit.title for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit.title, hit.body[:40]] for hit in hits(request.args["q"])]
