"""The task runs only a ticket that this application signed when it enqueued the work."""

from celery import shared_task
from flask import Blueprint, current_app
from flask_login import current_user, login_required
from itsdangerous import BadSignature, URLSafeSerializer

from tmkb.authoring.proofs.stage import Document, db

# region example
bp = Blueprint("documents", __name__)


def tickets():
    return URLSafeSerializer(current_app.config["SECRET_KEY"], salt="publish-document")


@bp.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    db.first_or_404(db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id))
    publish_document.delay(tickets().dumps(document_id))
    return "", 202


@shared_task
def publish_document(ticket):
    try:
        document_id = tickets().loads(str(ticket))
    except BadSignature:
        raise PermissionError("not enqueued by this application") from None
    document = db.session.get(Document, document_id)
    document.state = "published"
    db.session.commit()


# endregion
