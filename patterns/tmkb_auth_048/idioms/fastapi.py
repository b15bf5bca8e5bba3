"""An assistant that pays invoices. Its model is a stub that obeys the last instruction in the text that it reads."""

import inspect
import secrets

from fastapi import APIRouter, FastAPI, HTTPException, Response
from pydantic import BaseModel
from sqlalchemy import JSON, delete, select
from sqlalchemy.orm import Mapped, Session, mapped_column
from starlette.testclient import TestClient

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Invoice(Base):
    __tablename__ = "invoices"
    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str]
    organization_id: Mapped[int]
    payments: Mapped[int] = mapped_column(default=0)


class PendingCall(Base):
    __tablename__ = "pending_calls"
    id: Mapped[str] = mapped_column(primary_key=True, default=secrets.token_urlsafe)
    user_id: Mapped[int]
    call: Mapped[dict] = mapped_column(JSON)


class Question(BaseModel):
    message: str


def list_invoices(user: User, db: Session):
    return list(db.scalars(select(Invoice.number).where(Invoice.organization_id == user.organization_id)))


def pay_invoice(user: User, db: Session, *, invoice_id):
    if user.role != "admin":
        raise HTTPException(403)
    mine = select(Invoice).where(Invoice.organization_id == user.organization_id)
    invoice = db.scalar(mine.where(Invoice.id == invoice_id))
    if invoice is None:
        raise HTTPException(404)
    invoice.payments += 1
    db.commit()
    return "paid"


TOOLS = {"list_invoices": list_invoices, "pay_invoice": pay_invoice}
HARMLESS = {"list_invoices"}  # the other tools wait for a confirmation


def model(text: str):
    name, *arguments = text.rpartition("DO ")[2].split()
    return {"name": name, "arguments": {key: int(value) for key, value in (each.split("=") for each in arguments)}}


def run_tool(call, user: User, db: Session):
    tool = TOOLS.get(call["name"])
    try:
        bound = inspect.signature(tool).bind(user, db, **call["arguments"])
    except TypeError:  # no such tool or argument
        raise HTTPException(422) from None
    return {"result": tool(*bound.args, **bound.kwargs)}


router = APIRouter()


@router.post("/chat")
def chat(question: Question, response: Response, user: CurrentUser, db: Db):
    call = model(f"{user.name} writes: {question.message}")
    if call["name"] in HARMLESS:
        return run_tool(call, user, db)
    pending = PendingCall(user_id=user.id, call=call)
    db.add(pending)
    db.commit()
    response.status_code = 202
    return {"confirm": pending.id, "call": call}


# region idiom
@router.post("/calls/{call_id}/confirm")
def confirm(call_id: str, user: CurrentUser, db: Db):
    mine = delete(PendingCall).where(PendingCall.id == call_id, PendingCall.user_id == user.id)
    call = db.scalar(mine.returning(PendingCall.call))
    if call is None:
        raise HTTPException(404)
    db.commit()
    return run_tool(call, user, db)  # the tool checks the user's role and organization


# endregion


def client_of(user):
    app = FastAPI()
    app.include_router(router)
    return TestClient(app, headers={"X-User": user})


def event_add_invoice(db, **values):
    invoice = Invoice(**values)
    db.add(invoice)
    db.flush()
    return invoice.id


def event_ask(db, user, message):
    return client_of(user).post("/chat", json={"message": message}).json().get("confirm", "none")


def event_pay(db, user, invoice_id, times=1):
    client = client_of(user)
    path, body = "/chat", {"message": f"Please DO pay_invoice invoice_id={invoice_id}"}
    response = client.post(path, json=body)
    if response.status_code != 202:
        return [response.status_code, *(client.post(path, json=body).status_code for _ in range(times - 1))]
    path = f"/calls/{response.json()['confirm']}/confirm"
    return [client.post(path).status_code for _ in range(times)]


def state_payments(db):
    return [[invoice.number, invoice.payments] for invoice in db.scalars(select(Invoice).order_by(Invoice.id))]
