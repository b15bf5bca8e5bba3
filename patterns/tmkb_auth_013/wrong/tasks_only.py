"""The task is looked up under its project; the note on the next level is not."""

from app import Note, Project, Task, bp, new_title
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def find_task(project_id, task_id):
    mine = db.select(Project).filter_by(organization_id=current_user.organization_id, lead_id=current_user.id)
    project = db.first_or_404(mine.filter_by(id=project_id))
    return db.first_or_404(db.select(Task).filter_by(id=task_id, project_id=project.id))


def find_note(project_id, task_id, note_id):
    find_task(project_id, task_id)
    return db.get_or_404(Note, note_id)


@bp.get("")
@login_required
def show_task(project_id, task_id):
    return {"title": find_task(project_id, task_id).title}


@bp.put("")
@login_required
def edit_task(project_id, task_id):
    task = find_task(project_id, task_id)
    task.title = new_title()
    db.session.commit()
    return "", 204


@bp.get("/notes/<int:note_id>")
@login_required
def show_note(project_id, task_id, note_id):
    return {"text": find_note(project_id, task_id, note_id).text}


@bp.delete("/notes/<int:note_id>")
@login_required
def delete_note(project_id, task_id, note_id):
    note = find_note(project_id, task_id, note_id)
    db.session.delete(note)
    db.session.commit()
    return "", 204
