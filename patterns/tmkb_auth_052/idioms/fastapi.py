"""Projects of organizations, which a header names. The user's membership in it decides."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from sqlalchemy import ForeignKey, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Membership(Base):
    __tablename__ = "memberships"
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"), primary_key=True)
    role: Mapped[str]


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))


# region idiom
def membership(request: Request, user: CurrentUser, db: Db) -> Membership:
    org = request.headers.get("X-Org-Id", str(user.organization_id))
    if not org.isdecimal() or len(org) > 9:
        raise HTTPException(400)
    found = db.get(Membership, {"user_id": user.id, "organization_id": int(org)})
    if found is None:
        raise HTTPException(404)
    return found


# endregion


CurrentMembership = Annotated[Membership, Depends(membership)]
router = APIRouter()


@router.options("/projects")
def describe_projects():
    return Response(headers={"Allow": "GET, HEAD, OPTIONS"})


@router.get("/projects")
def list_projects(member: CurrentMembership, db: Db):
    names = select(Project.name).where(Project.organization_id == member.organization_id)
    return list(db.scalars(names.order_by(Project.id)))


@router.delete("/projects/{project_id}", status_code=204)
def delete_project(project_id: int, member: CurrentMembership, db: Db):
    if member.role != "admin":
        raise HTTPException(403)
    mine = select(Project).where(Project.organization_id == member.organization_id)
    project = db.scalar(mine.where(Project.id == project_id))
    if project is None:
        raise HTTPException(404)
    db.delete(project)
    db.commit()


def user_id_of(db, user):
    return db.scalars(select(User.id).where(User.name == user)).one()


def event_grant(db, user, organization_id, role):
    db.merge(Membership(user_id=user_id_of(db, user), organization_id=organization_id, role=role))


def event_revoke(db, user, organization_id):
    theirs = delete(Membership).where(Membership.user_id == user_id_of(db, user))
    db.execute(theirs.where(Membership.organization_id == organization_id))


def event_add_project(db, **values):
    project = Project(**values)
    db.add(project)
    db.flush()
    return project.id


def state_projects(db):
    return list(db.scalars(select(Project.name).order_by(Project.id)))
