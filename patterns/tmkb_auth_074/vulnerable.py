"""Whoever may edit a page moves it to each page that they can read, and a copy has the grants of its source."""

from app import EDITOR, READER, Grant, add_copy, ancestors, bp, children, find
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.put("/pages/<int:page_id>/parent")
@login_required
def move_page(page_id):
    page = find(page_id, EDITOR)
    parent = find(request.get_json()["parent_id"], READER)
    page.parent_id = parent.id
    db.session.commit()
    return "", 204


def copy_tree(page, parent):
    twin = add_copy(page, parent)
    for grant in db.session.scalars(db.select(Grant).filter_by(page_id=page.id)):
        db.session.add(Grant(page_id=twin.id, user_id=grant.user_id, level=grant.level))
    for child in children(page):
        copy_tree(child, twin)
    return twin


@bp.post("/pages/<int:page_id>/copy")
@login_required
def copy_page(page_id):
    page = find(page_id, READER)
    parent = find(request.get_json()["parent_id"], READER)
    if page in ancestors(parent):
        abort(409)
    twin = copy_tree(page, parent)
    db.session.commit()
    return {"id": twin.id}, 201


# endregion
