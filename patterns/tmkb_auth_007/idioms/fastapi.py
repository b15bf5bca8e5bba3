"""Invoices of organizations: admins reach all of their organization, other members those that they handle."""

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db


class Invoice(Base):
    __tablename__ = "invoices"
    id: Mapped[int] = mapped_column(primary_key=True)
    total: Mapped[int]
    state: Mapped[str] = mapped_column(default="open")
    created_by: Mapped[int]
    handler_id: Mapped[int]
    organization_id: Mapped[int]


class NewInvoice(BaseModel):
    total: int


router = APIRouter()


@router.post("/invoices", status_code=201)
def create_invoice(body: NewInvoice, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    invoice = Invoice(total=body.total, created_by=user.id, handler_id=user.id, organization_id=user.organization_id)
    db.add(invoice)
    db.commit()
    return {"id": invoice.id}


# region idiom
def invoices_of(user):
    ours = select(Invoice).filter_by(organization_id=user.organization_id)
    return ours if user.role == "admin" else ours.filter_by(handler_id=user.id)


@router.get("/invoices/{invoice_id}")
def show_invoice(invoice_id: int, user: CurrentUser, db: Db):
    if invoice := db.scalar(invoices_of(user).filter_by(id=invoice_id)):
        return {"total": invoice.total, "state": invoice.state}
    raise HTTPException(404)


# endregion


@router.post("/invoices/{invoice_id}/cancel", status_code=204)
def cancel_invoice(invoice_id: int, user: CurrentUser, db: Db):
    invoice = db.scalar(invoices_of(user).filter_by(id=invoice_id))
    if invoice is None:
        raise HTTPException(404)
    invoice.state = "cancelled"
    db.commit()


def event_assign(db, invoice, handler):
    db.get(Invoice, int(invoice)).handler_id = handler


def state_invoices(db):
    return [[invoice.total, invoice.state] for invoice in db.scalars(select(Invoice).order_by(Invoice.id))]
