"""Tasks, projects and budgets of organizations. A version of the code shows tasks with what they refer to."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    name = mapped_column(db.String, nullable=False)
    confidential = mapped_column(db.Boolean, nullable=False, default=False)
    tasks = relationship("Task", back_populates="project", order_by="Task.title")
    budget = relationship("Budget", back_populates="project", uselist=False)

    def open_to(self, user):
        return user.role == "admin" or not self.confidential


class Task(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    project_id = mapped_column(db.ForeignKey("project.id"), nullable=False)
    assignee_id = mapped_column(db.Integer, nullable=False)
    blocker_id = mapped_column(db.ForeignKey("task.id"))
    title = mapped_column(db.String, nullable=False)
    project = relationship("Project", back_populates="tasks")
    blocker = relationship("Task", remote_side=[id])

    @property
    def organization_id(self):
        return self.project.organization_id

    def open_to(self, user):
        return user.role == "admin" or self.assignee_id == user.id


class Budget(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    project_id = mapped_column(db.ForeignKey("project.id"), nullable=False)
    total = mapped_column(db.Integer, nullable=False)
    project = relationship("Project", back_populates="budget")

    @property
    def organization_id(self):
        return self.project.organization_id

    def open_to(self, user):
        return user.role == "admin"


bp = Blueprint("tasks", __name__)

FIELDS = {Task: ["title"], Project: ["name"], Budget: ["total"]}
EXPANDABLE = {Task: ["project", "blocker"], Project: ["tasks", "budget"], Budget: []}


@bp.get("/budgets/<int:budget_id>")
@login_required
def show_budget(budget_id):
    budget = db.get_or_404(Budget, budget_id)
    if current_user.role != "admin" or current_user.organization_id != budget.organization_id:
        abort(404)
    return {"total": budget.total}


def requested_expansion():
    return request.args.get("expand", "")


def event_plan():
    """Plan projects of Acme and Globex; a task of Bob is blocked by one of Globex."""
    ALICE, BOB, MALLORY = 1, 2, 3
    lyon = Project(organization_id=1, name="Relocation to Lyon", budget=Budget(total=900_000))
    merger = Project(organization_id=1, name="Acquisition of Initech", confidential=True)
    globex = Project(organization_id=2, name="Globex launch", budget=Budget(total=70_007))
    press = Task(title="Draft the press release", assignee_id=MALLORY, project=globex)
    movers = Task(title="Book the movers", assignee_id=BOB, project=lyon, blocker=press)
    layoffs = Task(title="Choose who is let go", assignee_id=ALICE, project=lyon)
    room = Task(title="Book a room", assignee_id=BOB, project=merger)
    db.session.add_all([movers, layoffs, room, press])
    db.session.flush()
    return {"movers": movers.id, "layoffs": layoffs.id, "room": room.id, "press": press.id, "lyon": lyon.id}


def event_sell(project):
    """Move a project of Acme to Globex."""
    db.session.get(Project, project).organization_id = 2


def event_path(levels):
    """Return a path that goes down to the tasks of a project and up again."""
    return ".".join(["project.tasks"] * levels)


def state_tasks():
    return [[task.title, task.assignee_id] for task in db.session.scalars(db.select(Task).order_by(Task.id))]
