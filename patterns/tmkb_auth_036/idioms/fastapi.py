"""Exports of deals with the rows and columns of the page, for a requester who may still see all of them."""

import csv
import io

from fastapi import APIRouter, HTTPException, Response
from sqlalchemy import JSON, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Deal(Base):
    __tablename__ = "deals"
    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int]
    manager_id: Mapped[int]
    customer: Mapped[str]
    amount: Mapped[int]
    margin: Mapped[int]


class Export(Base):
    """A finished file, and which deals and fields it contains."""

    __tablename__ = "exports"
    id: Mapped[int] = mapped_column(primary_key=True)
    requester_id: Mapped[int]
    deal_ids: Mapped[list[int]] = mapped_column(JSON)
    fields: Mapped[list[str]] = mapped_column(JSON)
    content: Mapped[str]


router = APIRouter()


def visible_deals(user: User):
    deals = select(Deal).where(Deal.organization_id == user.organization_id)
    return deals if user.role == "admin" else deals.where(Deal.manager_id == user.id)


def deal_fields(user: User):
    return ["customer", "amount", "margin"] if user.role == "admin" else ["customer", "amount"]


def to_csv(rows):
    sheet = io.StringIO()
    csv.writer(sheet).writerows(rows)
    return sheet.getvalue()


@router.get("/deals")
def list_deals(user: CurrentUser, db: Db):
    fields = deal_fields(user)
    return [[getattr(deal, field) for field in fields] for deal in db.scalars(visible_deals(user))]


# region idiom
@router.post("/exports", status_code=201)
def create_export(user: CurrentUser, db: Db):
    fields = deal_fields(user)  # the page uses these two functions, too
    deals = db.scalars(visible_deals(user)).all()
    rows = [[getattr(deal, field) for field in fields] for deal in deals]
    return {"id": store_export(db, user, deals, fields, to_csv([fields, *rows]))}


# endregion


def store_export(db, user, deals, fields, content):
    export = Export(requester_id=user.id, deal_ids=[deal.id for deal in deals], fields=fields, content=content)
    db.add(export)
    db.commit()
    return export.id


@router.get("/exports/{export_id}")
def download_export(export_id: int, user: CurrentUser, db: Db):
    export = db.scalar(select(Export).where(Export.id == export_id, Export.requester_id == user.id))
    visible = {deal.id for deal in db.scalars(visible_deals(user))}
    if export is None or not (visible.issuperset(export.deal_ids) and set(deal_fields(user)).issuperset(export.fields)):
        raise HTTPException(404)
    return Response(export.content, media_type="text/csv")


def event_deals(db):
    """Bob and Alice of Acme and Mallory of Globex manage one deal each."""
    for user_id, organization_id, customer in [(2, 1, "Northwind"), (1, 1, "Southgate"), (3, 2, "Overseas")]:
        deal = Deal(manager_id=user_id, organization_id=organization_id, customer=customer)
        deal.amount, deal.margin = 100 * user_id, 7000 + user_id
        db.add(deal)


def event_assign(db, customer, user):
    """Give a deal to another manager, and to the organization of this manager."""
    deal = db.scalars(select(Deal).where(Deal.customer == customer)).one()
    manager = db.scalars(select(User).where(User.name == user)).one()
    deal.manager_id, deal.organization_id = manager.id, manager.organization_id


def event_detach(db, customer):
    """Try to take a deal out of its organization."""
    try:
        with db.begin_nested():
            db.scalars(select(Deal).where(Deal.customer == customer)).one().organization_id = None
    except IntegrityError:
        pass


def state_exports(db):
    return [[export.requester_id, export.content] for export in db.scalars(select(Export))]
