from worklane.clock import now
from worklane.extensions import db
from worklane.models import Document, DocumentVersion
from worklane.services import retrieval, search, webhooks


def create(project, author, title, body, status="draft"):
    """Create a document. The caller checks the fields and commits."""
    document = Document(
        organization_id=project.organization_id,
        project_id=project.id,
        author_id=author.id,
        title=title,
        body=body,
        status=status,
    )
    db.session.add(document)
    db.session.flush()
    _index(document)
    return document


def change(document, editor, title=None, body=None):
    """Change a document and keep what it was. The caller commits."""
    number = len(document.versions) + 1
    db.session.add(
        DocumentVersion(
            document_id=document.id, number=number, title=document.title, body=document.body, editor_id=editor.id
        )
    )
    document.title = title or document.title
    document.body = document.body if body is None else body
    _index(document)


def publish(document):
    document.status = "published"
    payload = {"id": document.id, "title": document.title}
    webhooks.publish(document.organization_id, "document.published", payload)


def delete(document):
    """Move a document to the trash."""
    document.deleted_at = now()
    search.remove("document", document.id)


def _index(document):
    search.index_document(document)
    retrieval.index_document(document)
