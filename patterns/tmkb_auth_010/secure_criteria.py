"""The task is loaded with criteria that its relations inherit, so ?expand= finds only what the caller may read."""

from app import EXPANDABLE, FIELDS, Budget, Project, Task, bp, requested_expansion
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy import and_, literal, or_
from sqlalchemy.orm import with_loader_criteria

from tmkb.authoring.proofs.stage import db


# region example
def readable_by(user):
    table = Project.__table__  # the criteria for Project would apply to a subquery on the class
    own = db.select(table.c.id).where(table.c.organization_id == user.organization_id)
    admin = literal(user.role == "admin")
    return [
        with_loader_criteria(Project, and_(Project.id.in_(own), or_(admin, ~Project.confidential))),
        with_loader_criteria(Task, and_(Task.project_id.in_(own), or_(admin, Task.assignee_id == user.id))),
        with_loader_criteria(Budget, and_(Budget.project_id.in_(own), admin)),
    ]


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


def find_task(task_id):
    return db.first_or_404(db.select(Task).filter_by(id=task_id).options(*readable_by(current_user)))


@bp.before_request
def limit_expansion():
    if requested_expansion().count(".") > 3:
        abort(400)


@bp.get("/tasks/<int:task_id>")
@login_required
def show_task(task_id):
    return render(find_task(task_id), requested_expansion())


@bp.patch("/tasks/<int:task_id>")
@login_required
def rename_task(task_id):
    task = find_task(task_id)
    task.title = request.get_json()["title"]
    db.session.commit()
    return render(task, requested_expansion())


# endregion
