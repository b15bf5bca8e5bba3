"""An application that uses what the stage offers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Cookie, Form, Header, Request, Response, UploadFile
from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, config
from tmkb.authoring.stacks.stage import enqueue


class Entry(Base):
    __tablename__ = "entries"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]


class NewEntry(BaseModel):
    amount: int | str


router = APIRouter()
started = []


def total(db):
    return db.scalar(select(func.sum(Entry.amount)))


# region idiom
@router.get("/me")
def me(user: CurrentUser, db: Db, flavor: Annotated[str | None, Cookie()] = None):
    return {"role": user.role, "organization": user.organization_id, "cookie": flavor, "total": total(db)}


# endregion


@router.get("/cookie")
def cookie(response: Response):
    response.set_cookie("flavor", "sweet")


@router.post("/form")
def form(text: Annotated[str, Form()]):
    return text


@router.post("/file")
def file(file: UploadFile):
    return file.file.read().decode()


@router.post("/text")
async def text(request: Request):
    return (await request.body()).decode()


@router.post("/json", status_code=204)
def add(entry: NewEntry, user: CurrentUser, db: Db):
    db.add(Entry(amount=entry.amount))
    db.commit()


@router.post("/start")
def start():
    started.append(datetime.now(UTC))


@router.get("/late")
def late():
    return {"late": bool(started) and datetime.now(UTC) - started[0] > timedelta(minutes=59)}


@router.get("/greeting")
def greeting(x_name: Annotated[str, Header()]):
    return f"{config['GREETING']} {x_name}"


@router.post("/job")
def job(entry: NewEntry):
    enqueue(work, entry.amount)


def work(db, amount):
    db.add(Entry(amount=int(amount)))
    db.commit()


@router.get("/crash")
def crash():
    raise LookupError("nothing here")


def event_add(db, amount):
    db.add(Entry(amount=amount))
    db.flush()
    return total(db)


def state_total(db):
    return total(db)
