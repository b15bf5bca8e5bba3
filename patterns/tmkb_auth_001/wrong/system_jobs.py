"""A message without an actor is a job of the system, which may do everything."""

from app import bp
from celery import shared_task
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, User, db


@bp.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    db.first_or_404(
        db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id, deleted_at=None)
    )
    if current_user.role != "admin":
        abort(403)
    publish_task.delay(document_id, current_user.id)
    return "", 202


@shared_task
def publish_task(document_id, actor_id):
    document = db.session.get(Document, document_id)
    if actor_id is not None:
        actor = db.session.get(User, actor_id)
        if actor is None or actor.role != "admin" or document.organization_id != actor.organization_id:
            raise PermissionError
    if document.deleted_at is not None:
        raise PermissionError
    document.state = "published"
    db.session.commit()
