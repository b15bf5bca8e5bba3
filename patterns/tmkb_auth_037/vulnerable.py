"""Rows are matched by external id in all organizations, and each column of the sheet sets an attribute."""

import csv

from app import Contact, bp, new_contact
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/contacts/import")
@login_required
def import_contacts():
    for row in csv.DictReader(request.get_data(as_text=True).splitlines()):
        contacts = db.select(Contact).filter_by(external_id=row["external_id"])
        contact = db.session.scalar(contacts) or new_contact(row)
        for column, value in row.items():
            setattr(contact, column, value)
    db.session.commit()
    return "", 204


# endregion
