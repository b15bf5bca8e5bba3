"""Documents of organizations, which admins publish. A version of the code publishes them in a background job."""

from celery import current_app
from flask import Blueprint

from tmkb.authoring.proofs.stage import Document, db

bp = Blueprint("documents", __name__)


def event_take():
    """Take the first waiting message from the queue, as any service that shares the broker can."""
    with current_app.connection_for_read() as connection:
        queue = connection.SimpleQueue("celery")
        message = queue.get(block=False)
        message.ack()
        queue.close()
    args, kwargs, _ = message.payload
    return {"task": message.headers["task"], "args": args, "kwargs": kwargs}


def event_enqueue(message, position=None, value=None):
    """Put a message on the queue, with another argument at ``position`` if it has one there."""
    args = [value if index == position else arg for index, arg in enumerate(message["args"])]
    current_app.send_task(message["task"], args, message["kwargs"])


def event_move_document(document_id, organization_id):
    """Move a document to another organization."""
    db.session.get(Document, document_id).organization_id = organization_id


def event_delete_document(document_id):
    """Mark a document as deleted."""
    db.session.get(Document, document_id).deleted_at = db.func.now()


def event_withdraw_document(document_id):
    """Withdraw a published document."""
    db.session.get(Document, document_id).state = "withdrawn"


def state_documents():
    return [[document.id, document.state] for document in db.session.scalars(db.select(Document).order_by(Document.id))]
