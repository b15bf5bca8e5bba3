"""One contact is edited under a rule; a sheet of them is matched by external id alone and fills every column it has."""

import csv

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Contact(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    owner_id = db.Column(db.Integer, nullable=False)
    external_id = db.Column(db.String, nullable=False)
    name = db.Column(db.String)
    email = db.Column(db.String)
    credit_limit = db.Column(db.Integer, nullable=False, default=0)


# region example
bp = Blueprint("contacts", __name__)


def may_edit(actor, contact):
    return actor.role == "admin" or contact.owner_id == actor.id


@bp.patch("/contacts/<int:contact_id>")
@login_required
def edit_contact(contact_id):
    within = db.select(Contact).filter_by(organization_id=current_user.organization_id)
    contact = db.first_or_404(within.filter_by(id=contact_id))
    if not may_edit(current_user, contact):
        abort(403)
    contact.name, contact.email = request.json["name"], request.json["email"]
    db.session.commit()
    return "", 204


def new_contact(row):
    contact = Contact(
        organization_id=current_user.organization_id, owner_id=current_user.id, external_id=row["external_id"]
    )
    db.session.add(contact)
    return contact


@bp.post("/contacts/import")
@login_required
def import_contacts():
    sheet = csv.DictReader(request.get_data(as_text=True).splitlines())
    within = db.select(Contact)
    for row in sheet:
        contact = db.session.scalar(within.filter_by(external_id=row["external_id"])) or new_contact(row)
        for column in row:
            setattr(contact, column, row[column])
    db.session.commit()
    return "", 204


# endregion
