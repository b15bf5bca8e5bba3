"""Tasks are planned and moved only into projects that their sender manages, for people of the same organization."""

from flask import Blueprint, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    manager_id = db.Column(db.ForeignKey("user.id"), nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


class Task(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    title = db.Column(db.String, nullable=False)
    project_id = db.Column(db.ForeignKey("project.id"), nullable=False)
    assignee_id = db.Column(db.ForeignKey("user.id"), nullable=False)
    project = db.relationship(Project)
    assignee = db.relationship(User)


# region example
bp = Blueprint("tasks", __name__)


def visible_projects():
    return db.select(Project).filter_by(organization_id=current_user.organization_id)


def managed_projects():
    return visible_projects().filter_by(manager_id=current_user.id)


def colleagues():
    return db.select(User).filter_by(organization_id=current_user.organization_id)


@bp.get("/projects")
@login_required
def list_projects():
    return {project.name: project.id for project in db.session.scalars(visible_projects())}


@bp.post("/tasks")
@login_required
def create_task():
    # region template
    body = request.get_json()
    project = db.first_or_404(managed_projects().filter_by(id=body["project_id"]))
    assignee = db.first_or_404(colleagues().filter_by(id=body["assignee_id"]))
    task = Task(title=body["title"], project=project, assignee=assignee)
    # endregion
    db.session.add(task)
    db.session.commit()
    return {"id": task.id, "project": project.name, "assignee": assignee.name}, 201


@bp.patch("/tasks/<int:task_id>")
@login_required
def move_task(task_id):
    own = db.select(Task).join(managed_projects().subquery())
    task = db.first_or_404(own.filter(Task.id == task_id))
    task.project = db.first_or_404(managed_projects().filter_by(id=request.get_json()["project_id"]))
    db.session.commit()
    return {"id": task.id, "project": task.project.name}


# endregion
