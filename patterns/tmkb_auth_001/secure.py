"""The task is told who asked, reloads actor and document, and decides again."""

from celery import shared_task
from flask import Blueprint
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, User, db

# region example
bp = Blueprint("documents", __name__)


@bp.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    db.first_or_404(db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id))
    publish_document.delay(document_id, current_user.id)
    return "", 202


# region template
@shared_task
def publish_document(document_id, actor_id):
    actor = db.session.get(User, actor_id)
    document = actor and db.session.scalar(
        db.select(Document).filter_by(id=document_id, organization_id=actor.organization_id)
    )
    if document is None:
        raise PermissionError("actor may not publish this")
    # endregion
    document.state = "published"
    db.session.commit()


# endregion
