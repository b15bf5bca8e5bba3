"""Copying needs only read permissions."""

from app import EDITOR, MANAGER, READER, Grant, add_copy, ancestors, audience, bp, children, find, lock_tree, own_level
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def move(page_id, parent_id, expected_audience):
    lock_tree()
    page = find(page_id, MANAGER)
    parent = find(parent_id, EDITOR)
    if page in ancestors(parent):
        abort(409)
    page.parent_id = parent.id
    if audience(page) != expected_audience:
        abort(409)
    db.session.commit()


@bp.put("/pages/<int:page_id>/parent")
@login_required
def move_page(page_id):
    body = request.get_json()
    move(page_id, body["parent_id"], body["audience"])
    return "", 204


def copy_tree(page, parent):
    twin = add_copy(page, parent)
    twin.restricted = page.restricted
    db.session.add(Grant(page_id=twin.id, user_id=current_user.id, level=MANAGER))
    for child in children(page):
        if own_level(child) >= READER:
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
    twin.restricted = any(each.restricted for each in ancestors(page))
    db.session.commit()
    return {"id": twin.id}, 201
