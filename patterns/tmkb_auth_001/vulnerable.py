"""A request checks access and enqueues a bare id; the task publishes whatever document it is given."""

from celery import shared_task
from flask import Blueprint
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db

# region example
bp = Blueprint("documents", __name__)


@bp.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    db.first_or_404(db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id))
    publish_document.delay(document_id)
    return "", 202


@shared_task
def publish_document(document_id):
    document = db.session.get(Document, document_id)
    document.state = "published"
    db.session.commit()


# endregion
