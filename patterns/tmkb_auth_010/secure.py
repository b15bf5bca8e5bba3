"""The serializer checks every record that it meets, so ?expand= shows no more than a direct request."""

from app import EXPANDABLE, FIELDS, Task, bp, requested_expansion
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def may_read(record):
    return record.organization_id == current_user.organization_id and record.open_to(current_user)


def readable(value):
    if isinstance(value, list):
        return [record for record in value if may_read(record)]
    return value if value is not None and may_read(value) else None


# endregion


def render(record, expand):
    if isinstance(record, list):
        return [render(each, expand) for each in record]
    if record is None:
        return None
    body = {field: getattr(record, field) for field in FIELDS[type(record)]}
    name, _, rest = expand.partition(".")
    if name in EXPANDABLE[type(record)]:
        body[name] = render(readable(getattr(record, name)), rest)
    return body


def find_task(task_id):
    task = db.get_or_404(Task, task_id)
    if not may_read(task):
        abort(404)
    return task


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
