"""A task checks who reads it; what ?expand= pulls in behind it is serialized without another question."""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    name = db.Column(db.String, nullable=False)
    tasks = db.relationship("Task", back_populates="project", order_by="Task.id")
    budget = db.relationship("Budget", back_populates="project", uselist=False)


class Task(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    project_id = db.Column(db.ForeignKey("project.id"), nullable=False)
    assignee_id = db.Column(db.Integer, nullable=False)
    title = db.Column(db.String, nullable=False)
    project = db.relationship("Project", back_populates="tasks")


class Budget(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    project_id = db.Column(db.ForeignKey("project.id"), nullable=False)
    total = db.Column(db.Integer, nullable=False)
    project = db.relationship("Project", back_populates="budget")


# region example
bp = Blueprint("tasks", __name__)

FIELDS = {Task: ["title"], Project: ["name"], Budget: ["total"]}
EXPANDABLE = {Task: ["project"], Project: ["tasks", "budget"], Budget: []}


def may_manage(project):
    return current_user.role == "admin" and project.organization_id == current_user.organization_id


def may_read(record):
    if isinstance(record, Task):
        return record.assignee_id == current_user.id or may_manage(record.project)
    if isinstance(record, Project):
        return record.organization_id == current_user.organization_id
    return isinstance(record, Budget) and may_manage(record.project)


def render(record, expand):
    if isinstance(record, list):
        return [render(each, expand) for each in record]
    if record is None:
        return None
    body = {field: getattr(record, field) for field in FIELDS[type(record)]}
    name, _, rest = expand.partition(".")
    if name in EXPANDABLE[type(record)]:
        body[name] = render(getattr(record, name), rest)
    return body


@bp.get("/tasks/<int:task_id>")
@login_required
def show_task(task_id):
    task = db.get_or_404(Task, task_id)
    if not may_read(task):
        abort(404)
    return jsonify(render(task, request.args.get("expand", "")))


@bp.get("/budgets/<int:budget_id>")
@login_required
def show_budget(budget_id):
    budget = db.get_or_404(Budget, budget_id)
    if not may_read(budget):
        abort(404)
    return jsonify(render(budget, ""))


# endregion
