"""Contacts of organizations, which their owners and administrators edit. A version of the code imports them as CSV."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Contact(db.Model):
    __table_args__ = (db.UniqueConstraint("organization_id", "external_id"),)
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    owner_id = mapped_column(db.Integer)
    external_id = mapped_column(db.String)
    name = mapped_column(db.String)
    email = mapped_column(db.String)
    credit_limit = mapped_column(db.Integer, default=0)


bp = Blueprint("contacts", __name__)


@bp.errorhandler(IntegrityError)
def created_meanwhile(_error):
    """Refuse a sheet with a contact that another import has just created."""
    return "", 409


@bp.before_request
def require_organization():
    if current_user.is_authenticated and current_user.organization_id is None:
        abort(403)


def may_edit(user, contact):
    """Return whether ``user`` may edit ``contact``, which belongs to the organization of ``user``."""
    return user.role == "admin" or contact.owner_id == user.id


@bp.patch("/contacts/<int:contact_id>")
@login_required
def edit_contact(contact_id):
    contacts = db.select(Contact).filter_by(organization_id=current_user.organization_id)
    contact = db.first_or_404(contacts.filter_by(id=contact_id))
    if not may_edit(current_user, contact):
        abort(403)
    contact.name, contact.email = request.get_json()["name"], request.get_json()["email"]
    db.session.commit()
    return "", 204


def new_contact(row):
    """Add a contact of the current user with the external id of ``row``."""
    contact = Contact(organization_id=current_user.organization_id, owner_id=current_user.id)
    contact.external_id = row["external_id"]
    db.session.add(contact)
    return contact


def event_contacts():
    """Bob and Alice of Acme own one contact each, Mallory of Globex two. Two tenants use the external id C-100."""
    contacts = [(1, 2, "C-100"), (1, 1, "C-200"), (2, 3, "C-100"), (2, 3, "C-300")]
    for organization_id, owner_id, external_id in contacts:
        contact = Contact(organization_id=organization_id, owner_id=owner_id, external_id=external_id)
        contact.email = "old@example.org"
        db.session.add(contact)
        db.session.flush()  # ids from 1 to 4


def event_hand_over(contact, owner):
    """Make somebody else the owner of a contact."""
    db.session.execute(db.update(Contact).filter_by(id=contact).values(owner_id=owner))


def state_old_contacts():
    return _rows(db.select(Contact).where(Contact.id <= 4))


def state_contacts():
    return _rows(db.select(Contact))


def _rows(contacts):
    return [
        f"{contact.organization_id}/{contact.owner_id}/{contact.external_id}: {contact.email}, {contact.credit_limit}"
        for contact in db.session.scalars(contacts.order_by(Contact.id))
    ]
