"""One statement matches, checks and writes each row. The unique key contains the organization."""

import csv

from app import Contact, bp
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy.dialects.postgresql import insert

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/contacts/import")
@login_required
def import_contacts():
    for row in csv.DictReader(request.get_data(as_text=True).splitlines()):
        upsert_contact(row)
    db.session.commit()
    return "", 204


def upsert_contact(row):
    values = {"name": row["name"], "email": row["email"]}
    key = {"organization_id": current_user.organization_id, "external_id": row["external_id"]}
    may_edit = db.true() if current_user.role == "admin" else Contact.owner_id == current_user.id
    statement = insert(Contact).values(owner_id=current_user.id, **key, **values)
    if not db.session.execute(
        statement.on_conflict_do_update(index_elements=key, set_=values, where=may_edit)
    ).rowcount:
        abort(403)


# endregion
