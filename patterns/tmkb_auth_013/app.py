"""Projects, their tasks, and notes on tasks. Only the lead of a project uses it. A version of the code serves tasks."""

from flask import Blueprint, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    lead_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Task(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    project_id = mapped_column(db.ForeignKey("project.id"), nullable=False)


class Note(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    task_id = mapped_column(db.ForeignKey("task.id"), nullable=False)


bp = Blueprint("tasks", __name__, url_prefix="/projects/<int:project_id>/tasks/<int:task_id>")


def new_title():
    return request.get_json()["title"]


def event_plan(lead, organization, title, note):
    """Create a project with a task that has a note."""
    project = Project(lead_id=lead, organization_id=organization)
    db.session.add(project)
    db.session.flush()
    task = Task(title=title, project_id=project.id)
    db.session.add(task)
    db.session.flush()
    comment = Note(text=note, task_id=task.id)
    db.session.add(comment)
    db.session.flush()
    return {"project": project.id, "task": task.id, "note": comment.id}


def event_move(task, project):
    """Move a task to another project."""
    db.session.get(Task, task).project_id = project


def event_hand_over(project, lead):
    """Make somebody else the lead of a project."""
    db.session.get(Project, project).lead_id = lead


def state_tasks():
    return [task.title for task in db.session.scalars(db.select(Task).order_by(Task.id))]


def state_notes():
    return [note.text for note in db.session.scalars(db.select(Note).order_by(Note.id))]
