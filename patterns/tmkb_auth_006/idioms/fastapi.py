"""Profiles, roles and documents, each written through a model that lists the fields and rejects others."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, ConfigDict
from sqlalchemy import select

from tmkb.authoring.stacks.fastapi import CurrentUser, Db, Document, User


def require_json(request: Request) -> None:
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415)


router = APIRouter(dependencies=[Depends(require_json)])


# region idiom
class ProfileUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


@router.patch("/me", status_code=204)
def update_me(change: ProfileUpdate, user: CurrentUser, db: Db):
    user.name = change.name
    db.commit()


# endregion


class RoleUpdate(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: str


class DocumentInput(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str


def get_member(user_id: int, user: CurrentUser, db: Db) -> User:
    colleagues = select(User).where(User.organization_id == user.organization_id)
    member = db.scalar(colleagues.where(User.id == user_id))
    if member is None or user.organization_id is None:
        raise HTTPException(404)
    if user.role != "admin":
        raise HTTPException(403)
    return member


@router.patch("/members/{user_id}", status_code=204)
def update_member(change: RoleUpdate, member: Annotated[User, Depends(get_member)], db: Db):
    member.role = change.role
    db.commit()


@router.post("/documents", status_code=201)
def create_document(body: DocumentInput, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    document = Document(title=body.title, owner_id=user.id, organization_id=user.organization_id)
    db.add(document)
    db.commit()
    return {"id": document.id}


@router.patch("/documents/{document_id}", status_code=204)
def update_document(document_id: int, change: DocumentInput, user: CurrentUser, db: Db):
    mine = select(Document).where(Document.organization_id == user.organization_id)
    document = db.scalar(mine.where(Document.id == document_id))
    if document is None:
        raise HTTPException(404)
    document.title = change.title
    db.commit()


def state_users(db):
    return [
        [user.id, user.name, user.role, user.organization_id] for user in db.scalars(select(User).order_by(User.id))
    ]


def state_documents(db):
    columns = Document.title, Document.owner_id, Document.organization_id, Document.state
    return [list(row) for row in db.execute(select(*columns).distinct().order_by(*columns))]
