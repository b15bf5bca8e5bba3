"""Invoices of organizations, with the lookup limited to those of the user's organization."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
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
    organization_id: Mapped[int]


class NewInvoice(BaseModel):
    total: int


router = APIRouter()


@router.post("/invoices", status_code=201)
def create_invoice(body: NewInvoice, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    invoice = Invoice(total=body.total, created_by=user.id, organization_id=user.organization_id)
    db.add(invoice)
    db.commit()
    return {"id": invoice.id}


# region idiom
def get_invoice(invoice_id: int, user: CurrentUser, db: Db) -> Invoice:
    mine = select(Invoice).where(Invoice.organization_id == user.organization_id)
    invoice = db.scalar(mine.where(Invoice.id == invoice_id))
    if invoice is None:
        raise HTTPException(404)
    return invoice


OwnInvoice = Annotated[Invoice, Depends(get_invoice)]
# endregion


@router.get("/invoices/{invoice_id}")
def show_invoice(invoice: OwnInvoice):
    return {"total": invoice.total, "state": invoice.state}


@router.post("/invoices/{invoice_id}/cancel", status_code=204)
def cancel_invoice(invoice: OwnInvoice, db: Db):
    invoice.state = "cancelled"
    db.commit()


def state_invoices(db):
    return [[invoice.total, invoice.state] for invoice in db.scalars(select(Invoice).order_by(Invoice.id))]
