"""Projects of organizations. Other tenants' projects get the response of absent ones; names are unique in a tenant."""

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import Index, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str]
    organization_id: Mapped[int]


class NewProject(BaseModel):
    slug: str
    copy_of: int | None = None


router = APIRouter(prefix="/projects")


# region idiom
def load_project(project_id: int, user: CurrentUser, db: Db) -> Project:
    own = select(Project).where(Project.organization_id == user.organization_id)
    project = db.scalar(own.where(Project.id == project_id))
    if project is None:
        raise HTTPException(404, "No such project.")
    return project


Index("project_slug", Project.organization_id, Project.slug, unique=True)
# endregion


@router.get("/free")
def is_free(slug: str, user: CurrentUser, db: Db):
    own = select(Project).where(Project.organization_id == user.organization_id)
    return {"free": db.scalar(own.where(Project.slug == slug)) is None}


@router.get("/{project_id}")
def show_project(project_id: int, user: CurrentUser, db: Db):
    return {"slug": load_project(project_id, user, db).slug}


@router.delete("/{project_id}", status_code=204)
def delete_project(project_id: int, user: CurrentUser, db: Db):
    project = load_project(project_id, user, db)
    if user.role != "admin":
        raise HTTPException(403, "Only administrators delete projects.")
    db.delete(project)
    db.commit()


@router.post("", status_code=201)
def create_project(body: NewProject, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(422, "A project needs an organization.")
    if body.copy_of is not None:
        load_project(body.copy_of, user, db)
    db.add(Project(slug=body.slug, organization_id=user.organization_id))
    try:
        db.commit()
    except IntegrityError as error:
        raise HTTPException(409, "This name is taken.") from error
    return {"slug": body.slug}


def configure(app: FastAPI):
    @app.exception_handler(HTTPException)
    def explain(request, error):
        return JSONResponse({"error": error.detail}, error.status_code)


def event_begin(db, slug, organization_id):
    db.add(Project(slug=slug, organization_id=organization_id))


def state_projects(db):
    return [[project.slug, project.organization_id] for project in db.scalars(select(Project).order_by(Project.id))]
