"""Imports of contacts in several requests: an admin starts an import, adds rows and finishes it.

The first response has a handle for the other requests. It is random, and it appears in URLs and so in logs, in browser
histories and in screenshots. A version of the code is the requests that take the handle.
"""

import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Import(db.Model):
    handle = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    rows = mapped_column(db.JSON, nullable=False)


class Contact(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    created_by = mapped_column(db.Integer, nullable=False)


bp = Blueprint("imports", __name__)


@bp.post("/imports")
@login_required
def start_import():
    if current_user.role != "admin" or current_user.organization_id is None:
        abort(403)
    started = Import(
        user_id=current_user.id, organization_id=current_user.organization_id, rows=request.get_json()["rows"]
    )
    db.session.add(started)
    db.session.commit()
    return {"handle": started.handle}, 201


def state_imports():
    return [[each.user_id, each.rows] for each in db.session.scalars(db.select(Import).order_by(Import.user_id))]


def state_contacts():
    contacts = db.session.scalars(db.select(Contact).order_by(Contact.id))
    return [[contact.name, contact.organization_id, contact.created_by] for contact in contacts]
