"""Tasks with what they refer to. The serializer checks every record that it meets."""

from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel
from sqlalchemy import ForeignKey, select
from sqlalchemy.orm import Mapped, Session, mapped_column, relationship

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int]
    name: Mapped[str]
    confidential: Mapped[bool] = mapped_column(default=False)
    tasks: Mapped[list["Task"]] = relationship(back_populates="project", order_by="Task.title")
    budget: Mapped["Budget | None"] = relationship(back_populates="project")

    def open_to(self, user: User) -> bool:
        return user.role == "admin" or not self.confidential


class Task(Base):
    __tablename__ = "tasks"
    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    assignee_id: Mapped[int]
    blocker_id: Mapped[int | None] = mapped_column(ForeignKey("tasks.id"))
    title: Mapped[str]
    project: Mapped[Project] = relationship(back_populates="tasks")
    blocker: Mapped["Task | None"] = relationship(remote_side=[id])

    @property
    def organization_id(self) -> int:
        return self.project.organization_id

    def open_to(self, user: User) -> bool:
        return user.role == "admin" or self.assignee_id == user.id


class Budget(Base):
    __tablename__ = "budgets"
    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    total: Mapped[int]
    project: Mapped[Project] = relationship(back_populates="budget")

    @property
    def organization_id(self) -> int:
        return self.project.organization_id

    def open_to(self, user: User) -> bool:
        return user.role == "admin"


FIELDS = {Task: ["title"], Project: ["name"], Budget: ["total"]}
EXPANDABLE = {Task: ["project", "blocker"], Project: ["tasks", "budget"], Budget: []}


# region idiom
def may_read(user: User, record) -> bool:
    return record.organization_id == user.organization_id and record.open_to(user)


def readable(user: User, value):
    if isinstance(value, list):
        return [record for record in value if may_read(user, record)]
    return value if value is not None and may_read(user, value) else None


# endregion


def render(user: User, record, expand: str):
    if isinstance(record, list):
        return [render(user, each, expand) for each in record]
    if record is None:
        return None
    body = {field: getattr(record, field) for field in FIELDS[type(record)]}
    name, _, rest = expand.partition(".")
    if name in EXPANDABLE[type(record)]:
        body[name] = render(user, readable(user, getattr(record, name)), rest)
    return body


def limit_expansion(expand: str = "") -> None:
    if expand.count(".") > 3:
        raise HTTPException(400)


class TaskUpdate(BaseModel):
    title: str


router = APIRouter()
tasks = APIRouter(prefix="/tasks", dependencies=[Depends(limit_expansion)])


def find(db: Session, model: type[Base], record_id: int, user: User):
    record = db.get(model, record_id)
    if record is None or not may_read(user, record):
        raise HTTPException(404)
    return record


@tasks.get("/{task_id}")
def show_task(task_id: int, user: CurrentUser, db: Db, expand: str = ""):
    return render(user, find(db, Task, task_id, user), expand)


@tasks.patch("/{task_id}")
def rename_task(task_id: int, change: TaskUpdate, user: CurrentUser, db: Db, expand: str = ""):
    task = find(db, Task, task_id, user)
    task.title = change.title
    db.commit()
    return render(user, task, expand)


@router.get("/budgets/{budget_id}")
def show_budget(budget_id: int, user: CurrentUser, db: Db):
    return {"total": find(db, Budget, budget_id, user).total}


router.include_router(tasks)


def event_plan(db):
    """Plan projects of Acme and Globex; a task of Bob is blocked by one of Globex."""
    ALICE, BOB, MALLORY = 1, 2, 3
    lyon = Project(organization_id=1, name="Relocation to Lyon", budget=Budget(total=900_000))
    merger = Project(organization_id=1, name="Acquisition of Initech", confidential=True)
    globex = Project(organization_id=2, name="Globex launch", budget=Budget(total=70_007))
    press = Task(title="Draft the press release", assignee_id=MALLORY, project=globex)
    movers = Task(title="Book the movers", assignee_id=BOB, project=lyon, blocker=press)
    layoffs = Task(title="Choose who is let go", assignee_id=ALICE, project=lyon)
    room = Task(title="Book a room", assignee_id=BOB, project=merger)
    db.add_all([movers, layoffs, room, press])
    db.flush()
    return {"movers": movers.id, "layoffs": layoffs.id, "room": room.id, "press": press.id, "lyon": lyon.id}


def event_sell(db, project):
    """Move a project of Acme to Globex."""
    db.get(Project, project).organization_id = 2


def event_path(db, levels):
    """Return a path that goes down to the tasks of a project and up again."""
    return ".".join(["project.tasks"] * levels)


def state_tasks(db):
    return [[task.title, task.assignee_id] for task in db.scalars(select(Task).order_by(Task.id))]
