from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Comment, Task
from worklane.policy import document_or_404, project_role
from worklane.requests import body
from worklane.services import notifications

blueprint = Blueprint("comments", __name__)


@blueprint.get("/documents/<int:document_id>/comments")
@login_required
def of_document(document_id):
    document = document_or_404(document_id)
    query = select(Comment).filter_by(document_id=document.id).order_by(Comment.id)
    if g.membership.role == "guest":
        query = query.filter_by(internal=False)
    return jsonify([serializers.comment(each) for each in db.session.scalars(query)])


@blueprint.post("/documents/<int:document_id>/comments")
@login_required
def on_document(document_id):
    document = document_or_404(document_id)
    comment = _comment(document_id=document.id)
    if document.author_id != current_user.id and not comment.internal:
        text = f"{current_user.name} commented on {document.title}"
        notifications.notify(document.author, document.organization_id, text)
    db.session.commit()
    return jsonify(serializers.comment(comment)), 201


@blueprint.get("/tasks/<int:task_id>/comments")
@login_required
def of_task(task_id):
    task = _task(task_id)
    return jsonify([serializers.comment(each) for each in task.comments])


@blueprint.post("/tasks/<int:task_id>/comments")
@login_required
def on_task(task_id):
    task = _task(task_id)
    comment = _comment(task_id=task.id)
    if task.assignee and task.assignee_id != current_user.id:
        notifications.notify(task.assignee, task.organization_id, f"{current_user.name} commented on {task.title}")
    db.session.commit()
    return jsonify(serializers.comment(comment)), 201


@blueprint.delete("/comments/<int:comment_id>")
@login_required
def delete(comment_id):
    comment = db.session.get(Comment, comment_id)
    if comment is None or comment.author_id != current_user.id:
        abort(404)
    db.session.delete(comment)
    db.session.commit()
    return "", 204


def _comment(**target):
    data = body("text")
    internal = bool(data.get("internal")) and g.membership.role != "guest"
    comment = Comment(author_id=current_user.id, text=data["text"], internal=internal, **target)
    db.session.add(comment)
    db.session.flush()
    return comment


def _task(task_id):
    task = db.session.get(Task, task_id)
    if task is None or task.organization_id != g.organization.id:
        abort(404)
    if g.membership.role == "guest" and project_role(g.membership, task.project) is None:
        abort(404)
    return task
