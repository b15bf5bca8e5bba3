"""The task accepts only messages that this application has signed."""

from app import bp
from celery import shared_task
from flask import abort, current_app
from flask_login import current_user, login_required
from itsdangerous import BadSignature, URLSafeSerializer

from tmkb.authoring.proofs.stage import Document, db


# region example
def tickets():
    return URLSafeSerializer(current_app.config["SECRET_KEY"], salt="publish-document")


@bp.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    db.first_or_404(
        db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id, deleted_at=None)
    )
    if current_user.role != "admin":
        abort(403)
    publish_task.delay(tickets().dumps(document_id))
    return "", 202


@shared_task
def publish_task(ticket):
    try:
        document_id = tickets().loads(str(ticket))
    except BadSignature:
        raise PermissionError("not enqueued by this application") from None
    document = db.session.get(Document, document_id)
    document.state = "published"
    db.session.commit()


# endregion
