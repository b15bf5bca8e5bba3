"""Tasks of projects. Each id in the body is looked up among the rows that the caller may use for that purpose."""

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, ForeignKey, Select, Table, select
from sqlalchemy.orm import Mapped, Session, mapped_column, relationship

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User

task_watchers = Table(
    "task_watchers",
    Base.metadata,
    Column("task_id", ForeignKey("tasks.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
)


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    manager_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))


class Task(Base):
    __tablename__ = "tasks"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    assignee_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    project: Mapped[Project] = relationship()
    assignee: Mapped[User] = relationship()
    watchers: Mapped[list[User]] = relationship(secondary=task_watchers, order_by=User.id)


class NewTask(BaseModel):
    title: str
    project_id: int
    assignee_id: int
    watcher_ids: set[int] = set()


class TaskMove(BaseModel):
    project_id: int


router = APIRouter()


def one_or_404(db: Session, rows: Select):
    row = db.scalar(rows)
    if row is None:
        raise HTTPException(404)
    return row


# region idiom
def project_to_plan(project_id: int, user: User, db: Session) -> Project:
    own = {"organization_id": user.organization_id, "manager_id": user.id}
    return one_or_404(db, select(Project).filter_by(id=project_id, **own))


def colleague(user_id: int, user: User, db: Session) -> User:
    same = {"organization_id": user.organization_id}
    return one_or_404(db, select(User).filter_by(id=user_id, **same))


# endregion


def shown(task: Task):
    watchers = [user.name for user in task.watchers]
    return {"id": task.id, "project": task.project.name, "assignee": task.assignee.name, "watchers": watchers}


@router.get("/projects")
def list_projects(user: CurrentUser, db: Db):
    projects = db.scalars(select(Project).where(Project.organization_id == user.organization_id))
    return {project.name: project.id for project in projects}


@router.post("/tasks", status_code=201)
def create_task(body: NewTask, user: CurrentUser, db: Db):
    task = Task(
        title=body.title,
        project=project_to_plan(body.project_id, user, db),
        assignee=colleague(body.assignee_id, user, db),
        watchers=[colleague(watcher_id, user, db) for watcher_id in body.watcher_ids],
    )
    db.add(task)
    db.commit()
    return shown(task)


@router.patch("/tasks/{task_id}")
def move_task(task_id: int, change: TaskMove, user: CurrentUser, db: Db):
    task = one_or_404(db, select(Task).where(Task.id == task_id))
    project_to_plan(task.project_id, user, db)
    task.project = project_to_plan(change.project_id, user, db)
    db.commit()
    return shown(task)


def event_open(db, name, manager, organization):
    """Create a project and return its id."""
    project = Project(name=name, manager_id=manager, organization_id=organization)
    db.add(project)
    db.flush()
    return {"id": project.id}


def event_hand_over(db, project, manager):
    """Make somebody else the manager of a project."""
    db.get(Project, project).manager_id = manager


def event_sell(db, project):
    """Move a project to Globex; its manager stays."""
    db.get(Project, project).organization_id = 2


def state_tasks(db):
    return [[task.title, *shown(task).values()] for task in db.scalars(select(Task).order_by(Task.id))]
