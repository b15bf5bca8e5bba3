"""Notes on customers, whose list and page use the same query."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel
from sqlalchemy import ForeignKey, Select, or_, select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db


class Note(Base):
    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    text: Mapped[str]
    private: Mapped[bool]
    deleted: Mapped[bool] = mapped_column(default=False)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))


class NewNote(BaseModel):
    customer: str
    text: str
    private: bool


class NoteOut(BaseModel):
    customer: str
    text: str


router = APIRouter()


def or_404(note: Note | None) -> Note:
    if note is None:
        raise HTTPException(404)
    return note


@router.post("/notes", status_code=201)
def create_note(body: NewNote, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    note = Note(**body.model_dump(), author_id=user.id, organization_id=user.organization_id)
    db.add(note)
    db.commit()
    return {"id": note.id}


# region idiom
def visible_notes(user: CurrentUser) -> Select:
    allowed = or_(~Note.private, Note.author_id == user.id)
    return select(Note).where(Note.organization_id == user.organization_id, ~Note.deleted, allowed)


@router.get("/notes/{note_id}", response_model=NoteOut)
def show_note(note_id: int, notes: Annotated[Select, Depends(visible_notes)], db: Db):
    return or_404(db.scalar(notes.where(Note.id == note_id)))


# endregion


@router.get("/notes")
def list_notes(notes: Annotated[Select, Depends(visible_notes)], db: Db):
    return [{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in db.scalars(notes)]


def get_own_note(note_id: int, notes: Annotated[Select, Depends(visible_notes)], user: CurrentUser, db: Db) -> Note:
    return or_404(db.scalar(notes.where(Note.id == note_id, Note.author_id == user.id)))


OwnNote = Annotated[Note, Depends(get_own_note)]


@router.put("/notes/{note_id}/private", status_code=204)
def make_private(note: OwnNote, db: Db):
    note.private = True
    db.commit()


@router.delete("/notes/{note_id}", status_code=204)
def delete_note(note: OwnNote, db: Db):
    note.deleted = True
    db.commit()
