"""Pages in a tree. A page inherits the grants of the pages above it, up to the first one that is restricted."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, User, db

READER, EDITOR, MANAGER = 1, 2, 3


class Page(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    parent_id = mapped_column(db.Integer)
    restricted = mapped_column(db.Boolean, nullable=False, default=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Grant(db.Model):
    page_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)
    level = mapped_column(db.Integer, nullable=False)


bp = Blueprint("pages", __name__)


def lock_tree():
    """Let only one request at a time change the tree of the organization."""
    db.session.execute(db.select(Organization).filter_by(id=current_user.organization_id).with_for_update())


def ancestors(page):
    """Return the page and those above it."""
    pages = []
    while page is not None and page not in pages:
        pages.append(page)
        page = db.session.get(Page, page.parent_id) if page.parent_id else None
    return pages


def audience(page):
    """Return the level of each user, by the id as text."""
    levels = {}
    for each in ancestors(page):
        for grant in db.session.scalars(db.select(Grant).filter_by(page_id=each.id)):
            levels[str(grant.user_id)] = max(grant.level, levels.get(str(grant.user_id), 0))
        if each.restricted:
            break
    return levels


def own_level(page):
    return audience(page).get(str(current_user.id), 0)


def find(page_id, level):
    pages = db.select(Page).filter_by(organization_id=current_user.organization_id)
    page = db.first_or_404(pages.filter_by(id=page_id))
    if own_level(page) < level:
        abort(403 if own_level(page) else 404)
    return page


def children(page):
    return db.session.scalars(db.select(Page).filter_by(parent_id=page.id)).all()


def add_copy(page, parent):
    """Add a page with the text of another, without grants."""
    twin = Page(text=page.text, parent_id=parent.id, organization_id=parent.organization_id)
    db.session.add(twin)
    db.session.flush()
    return twin


@bp.get("/pages/<int:page_id>")
@login_required
def show_page(page_id):
    return {"text": find(page_id, READER).text}


@bp.put("/pages/<int:page_id>")
@login_required
def edit_page(page_id):
    find(page_id, EDITOR).text = request.get_json()["text"]
    db.session.commit()
    return "", 204


@bp.put("/pages/<int:page_id>/grants/<int:user_id>")
@login_required
def share_page(page_id, user_id):
    page = find(page_id, MANAGER)
    db.session.merge(Grant(page_id=page.id, user_id=user_id, level=request.get_json()["level"]))
    db.session.commit()
    return "", 204


def event_pages():
    """Bob edits Alice's board pages and Carol's team pages, which Dave reads."""
    db.session.add_all([User(id=4, name="carol", organization_id=1), User(id=5, name="dave", organization_id=1)])
    pages = {1: ("board", None), 2: ("bonus list", 1), 3: ("team", None), 4: ("notes", 3), 5: ("private", None)}
    pages |= {6: ("globex", None), 7: ("staff reviews", 3), 8: ("review forms", 7), 9: ("ideas", None)}
    for page_id, (text, parent_id) in pages.items():
        organization_id = 2 if page_id == 6 else 1
        values = {"text": text, "parent_id": parent_id, "restricted": page_id == 7}
        db.session.add(Page(id=page_id, organization_id=organization_id, **values))
    grants = {1: {1: MANAGER, 2: EDITOR}, 3: {1: EDITOR, 2: EDITOR, 4: MANAGER, 5: READER}, 4: {5: READER}}
    grants |= {5: {2: MANAGER}, 6: {3: MANAGER}, 7: {4: MANAGER}, 9: {4: EDITOR, 5: MANAGER}}
    for page_id, levels in grants.items():
        for user_id, level in levels.items():
            db.session.add(Grant(page_id=page_id, user_id=user_id, level=level))


def state_tree():
    return [[page.id, page.parent_id, page.text] for page in db.session.scalars(db.select(Page).order_by(Page.id))]


def state_cycles():
    """Return the ids of pages without a page at the top of the tree."""
    pages = db.session.scalars(db.select(Page).order_by(Page.id))
    return [page.id for page in pages if ancestors(page)[-1].parent_id is not None]
