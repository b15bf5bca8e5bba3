"""Timesheets of organizations. One function checks membership first, and then the rule of each action."""

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db


class Timesheet(Base):
    __tablename__ = "timesheets"
    id: Mapped[int] = mapped_column(primary_key=True)
    hours: Mapped[int]
    created_by: Mapped[int]
    organization_id: Mapped[int]


class Hours(BaseModel):
    hours: int


router = APIRouter()


@router.post("/timesheets", status_code=201)
def create_timesheet(body: Hours, user: CurrentUser, db: Db):
    sheet = Timesheet(hours=body.hours, created_by=user.id, organization_id=user.organization_id)
    db.add(sheet)
    db.commit()
    return {"id": sheet.id}


# region idiom
def load_timesheet(db: Db, user: CurrentUser, action: str, sheet_id: int) -> Timesheet:
    sheet = db.get(Timesheet, sheet_id)
    if sheet is None or sheet.organization_id != user.organization_id:
        raise HTTPException(404)
    is_creator = sheet.created_by == user.id
    if not {"edit": is_creator, "delete": is_creator or user.role == "admin"}[action]:
        raise HTTPException(403)
    return sheet


# endregion


@router.patch("/timesheets/{sheet_id}", status_code=204)
def edit_timesheet(sheet_id: int, body: Hours, user: CurrentUser, db: Db):
    load_timesheet(db, user, "edit", sheet_id).hours = body.hours
    db.commit()


@router.delete("/timesheets/{sheet_id}", status_code=204)
def delete_timesheet(sheet_id: int, user: CurrentUser, db: Db):
    db.delete(load_timesheet(db, user, "delete", sheet_id))
    db.commit()


def event_move_timesheet(db, timesheet_id, organization_id):
    """Move a timesheet to another organization."""
    db.get(Timesheet, timesheet_id).organization_id = organization_id


def state_timesheets(db):
    return [[sheet.id, sheet.hours] for sheet in db.scalars(select(Timesheet).order_by(Timesheet.id))]
