"""The client names the organization to search in."""

from app import Page, Reader, bp, index
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def hits(term):
    organization_id = request.args.get("organization_id", current_user.organization_id, int)
    ids = [hit["id"] for hit in index.search(term)]
    shared = db.select(Reader.page_id).filter_by(user_id=current_user.id)
    pages = db.select(Page).filter_by(organization_id=organization_id)
    found = db.session.scalars(pages.where(Page.id.in_(ids), Page.id.in_(shared)))
    return sorted(found, key=lambda page: ids.index(page.id))


@bp.get("/suggest")
@login_required
def suggest():
    return [hit.title for hit in hits(request.args["q"])]


@bp.get("/search")
@login_required
def search():
    return [[hit.title, hit.body[:40]] for hit in hits(request.args["q"])]
