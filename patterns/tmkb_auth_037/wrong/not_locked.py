"""Each row is matched and checked, and its contact can change until the commit."""

import csv

from app import Contact, bp, may_edit, new_contact
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/contacts/import")
@login_required
def import_contacts():
    for row in csv.DictReader(request.get_data(as_text=True).splitlines()):
        import_contact(row)
    db.session.commit()
    return "", 204


def import_contact(row):
    contacts = db.select(Contact).filter_by(organization_id=current_user.organization_id)
    contact = db.session.scalar(contacts.filter_by(external_id=row["external_id"])) or new_contact(row)
    if not may_edit(current_user, contact):
        abort(403)
    contact.name, contact.email = row["name"], row["email"]
