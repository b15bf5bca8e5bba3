"""Documents looked up by number among those of the user's own organization."""

# The same as vulnerable.py, with the fix and nothing else changed: the difference between the two is the advice.

from flask import Blueprint
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db

# region example
bp = Blueprint("documents", __name__)


@bp.get("/documents")
@login_required
def list_documents():
    documents = db.select(Document).filter_by(organization_id=current_user.organization_id)
    return [document.title for document in db.session.scalars(documents)]


# region template
@bp.get("/documents/<int:document_id>")
@login_required
def show_document(document_id):
    documents = db.select(Document).filter_by(organization_id=current_user.organization_id)
    document = db.first_or_404(documents.filter_by(id=document_id))
    return {"title": document.title}


# endregion
# endregion
