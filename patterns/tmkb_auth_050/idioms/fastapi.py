"""Attachments of projects, whose new columns a migration fills from what the rows belong to."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import PlainTextResponse
from sqlalchemy import select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int]


class Attachment(Base):
    __tablename__ = "attachments"
    name: Mapped[str] = mapped_column(primary_key=True)
    uploader_id: Mapped[int]
    project_id: Mapped[int | None]
    organization_id: Mapped[int | None]  # new


class Member(Base):
    __tablename__ = "members"
    user_id: Mapped[int] = mapped_column(primary_key=True)
    role: Mapped[str]
    may_export: Mapped[bool | None]  # new


# region idiom
def fill(db: Session):  # for example of op.get_bind() of Alembic
    project = select(Project.organization_id).where(Project.id == Attachment.project_id)
    empty = Attachment.organization_id.is_(None)
    filled = update(Attachment).values(organization_id=project.scalar_subquery())
    db.execute(filled.where(empty))
    if db.scalar(select(Attachment).where(empty)):
        raise ValueError("orphans")


# endregion


def fill_members(db: Session):
    db.execute(update(Member).where(Member.may_export.is_(None)).values(may_export=Member.role == "admin"))


router = APIRouter()


def attachments_of(user: CurrentUser, db: Db) -> list[str]:
    if user.organization_id is None:
        raise HTTPException(403)
    mine = select(Attachment.name).where(Attachment.organization_id == user.organization_id)
    return list(db.scalars(mine.order_by(Attachment.name)))


Visible = Annotated[list[str], Depends(attachments_of)]


@router.get("/attachments")
def list_attachments(names: Visible):
    return names


@router.get("/attachments/export", response_class=PlainTextResponse)
def export_attachments(names: Visible, user: CurrentUser, db: Db):
    member = db.get(Member, user.id)
    if member is None or not member.may_export:
        raise HTTPException(403)
    return "\n".join(names)


def event_upgrade(db):
    try:
        fill(db)
        fill_members(db)
    except ValueError as error:
        db.rollback()
        return {"stopped": type(error).__name__}
    return {"stopped": None}


def event_project(db, id, organization):
    db.add(Project(id=id, organization_id=organization))


def event_attachment(db, name, uploader, project, organization=None):
    db.add(Attachment(name=name, uploader_id=uploader, project_id=project, organization_id=organization))


def event_transferred(db, name, organization):
    db.get_one(Attachment, name).organization_id = organization


def event_member(db, user, role):
    db.add(Member(user_id=user, role=role))


def event_export_withdrawn(db, user):
    db.get_one(Member, user).may_export = False


def state_attachments(db):
    return [[each.name, each.organization_id] for each in db.scalars(select(Attachment).order_by(Attachment.name))]


def state_members(db):
    return [[each.user_id, each.may_export] for each in db.scalars(select(Member).order_by(Member.user_id))]
