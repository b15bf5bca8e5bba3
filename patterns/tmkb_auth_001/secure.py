"""The task receives the actor's id, loads actor and document in its own session, and checks permissions again."""

from app import bp
from celery import shared_task
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, User, db


# region example
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


# region template
@shared_task
def publish_task(document_id, actor_id):
    user = db.session.scalar(db.select(User).filter_by(id=actor_id, role="admin"))
    document = user and db.session.scalar(
        db.select(Document).filter_by(id=document_id, organization_id=user.organization_id, deleted_at=None)
    )
    if document is None:
        raise PermissionError
    # endregion
    if document.state == "new":
        document.state = "published"
        db.session.commit()


# endregion
