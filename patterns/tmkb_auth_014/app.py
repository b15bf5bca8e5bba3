"""Projects and their tasks. Only the manager of a project plans tasks in it. A version of the code stores tasks."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db

task_watcher = db.Table(
    "task_watcher",
    db.Column("task_id", db.ForeignKey("task.id"), primary_key=True),
    db.Column("user_id", db.ForeignKey("user.id"), primary_key=True),
)


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    manager_id = mapped_column(db.ForeignKey("user.id"), nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Task(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    project_id = mapped_column(db.ForeignKey("project.id"), nullable=False)
    assignee_id = mapped_column(db.ForeignKey("user.id"), nullable=False)
    project = relationship(Project)
    assignee = relationship(User)
    watchers = relationship(User, secondary=task_watcher)


bp = Blueprint("tasks", __name__)


@bp.get("/projects")
@login_required
def list_projects():
    projects = db.session.scalars(db.select(Project).filter_by(organization_id=current_user.organization_id))
    return {project.name: project.id for project in projects}


def read_task():
    body = {"watcher_ids": [], **request.get_json()}
    ids = [value for key, value in body.items() if key.endswith("_id")]
    if not all(type(each) is int for each in [*ids, *body["watcher_ids"]]):
        abort(422)
    body["watcher_ids"] = sorted(set(body["watcher_ids"]))
    return body


def find_task(task_id):
    own = db.select(Project.id).filter_by(organization_id=current_user.organization_id, manager_id=current_user.id)
    return db.first_or_404(db.select(Task).where(Task.id == task_id, Task.project_id.in_(own)))


def shown(task):
    watchers = [user.name for user in task.watchers]
    return {"id": task.id, "project": task.project.name, "assignee": task.assignee.name, "watchers": watchers}


def event_open(name, manager, organization):
    """Create a project and return its id."""
    project = Project(name=name, manager_id=manager, organization_id=organization)
    db.session.add(project)
    db.session.flush()
    return {"id": project.id}


def event_hand_over(project, manager):
    """Make somebody else the manager of a project."""
    db.session.get(Project, project).manager_id = manager


def event_sell(project):
    """Move a project to Globex; its manager stays."""
    db.session.get(Project, project).organization_id = 2


def state_tasks():
    return [[task.title, *shown(task).values()] for task in db.session.scalars(db.select(Task).order_by(Task.id))]
