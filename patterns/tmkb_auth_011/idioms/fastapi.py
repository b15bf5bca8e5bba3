"""Invoices that only administrators void. The function that voids an invoice checks the caller itself."""

from typing import ClassVar

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Mapped, Session, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Invoice(Base):
    __tablename__ = "invoices"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(default="open")
    organization_id: Mapped[int]
    kind: Mapped[str]
    __mapper_args__: ClassVar = {"polymorphic_on": "kind", "polymorphic_identity": "invoice"}


class CreditNote(Invoice):
    __mapper_args__: ClassVar = {"polymorphic_identity": "credit note"}


class Selection(BaseModel):
    ids: list[int]


router = APIRouter()


# region idiom
def void_invoice(db: Session, actor: User, invoice_id: int) -> None:
    invoice = db.get(Invoice, invoice_id)
    if not invoice or not actor.organization_id or invoice.organization_id != actor.organization_id:
        raise HTTPException(404)
    if actor.role != "admin":
        raise HTTPException(403)
    invoice.state = "void"


# endregion


@router.get("/invoices/{invoice_id}", response_class=HTMLResponse)
def show(invoice_id: int, user: CurrentUser, db: Db):
    mine = select(Invoice).where(Invoice.organization_id == user.organization_id)
    invoice = db.scalar(mine.where(Invoice.id == invoice_id))
    if invoice is None:
        raise HTTPException(404)
    form = f'<form method="post" action="/invoices/{invoice.id}/void"><button>Void</button></form>'
    return f"<p>Invoice {invoice.id} is {invoice.state}.</p>{form if user.role == 'admin' else ''}"


@router.post("/invoices/{invoice_id}/void")
def void(invoice_id: int, user: CurrentUser, db: Db):
    void_invoice(db, user, invoice_id)
    db.commit()
    return RedirectResponse(f"/invoices/{invoice_id}", 302)


@router.post("/api/invoices/void", status_code=204)
def void_by_api(body: Selection, user: CurrentUser, db: Db):
    for invoice_id in body.ids:
        void_invoice(db, user, invoice_id)
    db.commit()


def event_issue(db, organization, kind="invoice"):
    """Create an invoice or a credit note, and return its id."""
    models = {"invoice": Invoice, "credit note": CreditNote}
    invoice = models[kind](organization_id=organization)
    db.add(invoice)
    db.flush()
    return {"id": invoice.id}


def state_invoices(db):
    return list(db.scalars(select(Invoice.state).order_by(Invoice.id)))
