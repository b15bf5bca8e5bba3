"""Invoices, profiles and an accounting service. A version of the code remembers for whom a request is handled."""

from types import SimpleNamespace

from flask import Blueprint
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, db


class Invoice(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Profile(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    phone = mapped_column(db.String, nullable=False)


class Setting(db.Model):
    """A setting of the whole application, which requests read before they do anything else."""

    name = mapped_column(db.String, primary_key=True)
    value = mapped_column(db.String, nullable=False)


class Entry(db.Model):
    """An entry in the accounting service, in the account of the token."""

    id = mapped_column(db.Integer, primary_key=True)
    token = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)


class Ledger:
    """A client of the accounting service, for which a table stands. It acts for the organization of its token."""

    def __init__(self, token=None):
        self.token = token

    def entries(self):
        return db.session.scalars(db.select(Entry.text).filter_by(token=self.token).order_by(Entry.id)).all()

    def pay(self, text):
        db.session.add(Entry(token=self.token, text=text))
        db.session.commit()


bp = Blueprint("invoices", __name__)


def token_of(user):
    return f"token-{user.organization_id}"


def authorize(client, user):
    client.token = token_of(user)


def copy_of(user):
    """Return the id and the organization of ``user``, independent of the database session; None if not signed in."""
    return SimpleNamespace(id=user.id, organization_id=user.organization_id) if user.is_authenticated else None


def greeting():
    return db.session.get(Setting, "greeting").value


def name_of_organization(user):
    return db.session.get(Organization, user.organization_id).name if user and user.organization_id else None


def event_fill():
    db.session.add(Setting(name="greeting", value="Welcome"))
    db.session.add_all(Profile(user_id=number, phone=f"555-000{number}") for number in (1, 2, 3))
    db.session.add_all(Invoice(text=text, organization_id=i) for i, text in ((1, "rent of Hull"), (2, "lunch in Oslo")))
    db.session.add_all(Entry(text=text, token=f"token-{i}") for i, text in ((1, "loan of Hull"), (2, "gift in Oslo")))


def state_invoices():
    return [[invoice.text, invoice.organization_id] for invoice in db.session.scalars(db.select(Invoice))]


def state_entries():
    return [[entry.text, entry.token] for entry in db.session.scalars(db.select(Entry))]
