from datetime import date

from flask import Blueprint, abort, g, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Project, Task
from worklane.policy import project_role
from worklane.requests import body, page
from worklane.services import notifications, search, webhooks

blueprint = Blueprint("tasks", __name__)


@blueprint.get("/projects/<int:project_id>/tasks")
@login_required
def index(project_id):
    project = db.session.get(Project, project_id)
    if project is None or project.organization_id != g.organization.id:
        abort(404)
    if project.visibility == "private" and project_role(g.membership, project) is None:
        abort(404)
    query = select(Task).filter_by(project_id=project.id)
    if status := request.args.get("status"):
        query = query.filter_by(status=status)
    return jsonify([serializers.task(each) for each in db.session.scalars(page(query.order_by(Task.id)))])


@blueprint.post("/projects/<int:project_id>/tasks")
@login_required
def create(project_id):
    project = db.session.get(Project, project_id)
    if project is None or project_role(g.membership, project) not in ("editor", "manager"):
        abort(404)
    data = body("title")
    task = Task(
        organization_id=project.organization_id,
        project_id=project.id,
        title=data["title"],
        details=data.get("details", ""),
        due_on=_date(data.get("due_on")),
        creator_id=current_user.id,
    )
    db.session.add(task)
    db.session.flush()
    search.index_task(task)
    webhooks.publish(task.organization_id, "task.created", {"id": task.id, "title": task.title})
    db.session.commit()
    return jsonify(serializers.task(task)), 201


@blueprint.get("/tasks/<int:task_id>")
@login_required
def show(task_id):
    return jsonify(serializers.task(_task(task_id)))


@blueprint.patch("/tasks/<int:task_id>")
@login_required
def change(task_id):
    task = _task(task_id)
    if g.membership.role == "guest":
        abort(403)
    data = body()
    task.title = data.get("title", task.title)
    task.details = data.get("details", task.details)
    if "due_on" in data:
        task.due_on = _date(data["due_on"])
    search.index_task(task)
    db.session.commit()
    return jsonify(serializers.task(task))


@blueprint.post("/tasks/<int:task_id>/done")
@login_required
def done(task_id):
    task = _task(task_id)
    if g.membership.role == "guest":
        abort(403)
    task.status = "done"
    if task.creator_id != current_user.id:
        notifications.notify(task.creator, task.organization_id, f"{current_user.name} finished {task.title}")
    webhooks.publish(task.organization_id, "task.done", {"id": task.id, "title": task.title})
    db.session.commit()
    return jsonify(serializers.task(task))


@blueprint.delete("/tasks/<int:task_id>")
@login_required
def delete(task_id):
    task = _task(task_id)
    if task.creator_id != current_user.id and not g.membership.is_admin:
        abort(403)
    search.remove("task", task.id)
    db.session.delete(task)
    db.session.commit()
    return "", 204


def _task(task_id):
    task = db.session.get(Task, task_id)
    if task is None or task.organization_id != g.organization.id:
        abort(404)
    return task


def _date(text):
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        abort(400, "due_on is no date")
