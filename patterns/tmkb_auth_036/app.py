"""Deals of organizations: a page, and exports as CSV files, which a version of the code builds and serves."""

import csv
import io

from flask import Blueprint
from flask_login import current_user, login_required
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Deal(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    manager_id = mapped_column(db.Integer)
    customer = mapped_column(db.String)
    amount = mapped_column(db.Integer)
    margin = mapped_column(db.Integer)


class Export(db.Model):
    """A finished file, and which deals and columns it contains."""

    id = mapped_column(db.Integer, primary_key=True)
    requester_id = mapped_column(db.Integer)
    organization_id = mapped_column(db.Integer)
    deal_ids = mapped_column(db.JSON)
    columns = mapped_column(db.JSON)
    content = mapped_column(db.Text)


bp = Blueprint("deals", __name__)


def visible_deals(user):
    """Select the deals on the page of ``user``: an admin sees all of the organization, a member sees their own."""
    deals = db.select(Deal).filter_by(organization_id=user.organization_id)
    return deals if user.role == "admin" else deals.filter_by(manager_id=user.id)


def columns(user):
    """Return the columns on the page of ``user``."""
    return ["customer", "amount", "margin"] if user.role == "admin" else ["customer", "amount"]


def to_csv(shown, deals):
    sheet = io.StringIO()
    csv.writer(sheet).writerows([shown, *([getattr(deal, column) for column in shown] for deal in deals)])
    return sheet.getvalue()


def store_export(shown, deals):
    """Write ``deals`` into the file of a new export of the current user."""
    export = Export(
        requester_id=current_user.id,
        organization_id=current_user.organization_id,
        deal_ids=[deal.id for deal in deals],
        columns=shown,
        content=to_csv(shown, deals),
    )
    db.session.add(export)
    db.session.commit()
    return export


@bp.get("/deals")
@login_required
def list_deals():
    shown = columns(current_user)
    return [[getattr(deal, column) for column in shown] for deal in db.session.scalars(visible_deals(current_user))]


def event_deals():
    """Bob and Alice of Acme and Mallory of Globex manage one deal each."""
    for user_id, organization_id, customer in [(2, 1, "Northwind"), (1, 1, "Southgate"), (3, 2, "Overseas")]:
        deal = Deal(manager_id=user_id, organization_id=organization_id, customer=customer)
        deal.amount, deal.margin = 100 * user_id, 7000 + user_id
        db.session.add(deal)


def event_assign(customer, user):
    """Give a deal to another manager, and to the organization of this manager."""
    deal = db.session.scalars(db.select(Deal).filter_by(customer=customer)).one()
    manager = db.session.scalars(db.select(User).filter_by(name=user)).one()
    deal.manager_id, deal.organization_id = manager.id, manager.organization_id


def event_detach(customer):
    """Try to take a deal out of its organization."""
    try:
        with db.session.begin_nested():
            db.session.scalars(db.select(Deal).filter_by(customer=customer)).one().organization_id = None
    except IntegrityError:
        pass


def state_exports():
    return [[export.requester_id, export.content] for export in db.session.scalars(db.select(Export))]
