"""Each id in the body is looked up among the rows that the caller may use for that purpose."""

from app import Project, Task, bp, find_task, read_task, shown
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


# region example
# region template
def project_to_plan(project_id):
    own = db.select(Project).filter_by(organization_id=current_user.organization_id, manager_id=current_user.id)
    return db.first_or_404(own.where(Project.id == project_id))


def colleague(user_id):
    return db.first_or_404(db.select(User).filter_by(id=user_id, organization_id=current_user.organization_id))


# endregion


@bp.post("/tasks")
@login_required
def create_task():
    body = read_task()
    project, assignee = project_to_plan(body["project_id"]), colleague(body["assignee_id"])
    watchers = [colleague(user_id) for user_id in body["watcher_ids"]]
    task = Task(title=body["title"], project=project, assignee=assignee, watchers=watchers)
    db.session.add(task)
    db.session.commit()
    return shown(task), 201


@bp.patch("/tasks/<int:task_id>")
@login_required
def move_task(task_id):
    task = find_task(task_id)
    task.project = project_to_plan(read_task()["project_id"])
    db.session.commit()
    return shown(task)


# endregion
