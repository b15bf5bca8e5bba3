"""Documents opened by number, by whoever is signed in."""

# The example as people write it. What stands above the region is not shown: imports of the stage, models of its own.

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


@bp.get("/documents/<int:document_id>")
@login_required
def show_document(document_id):
    document = db.get_or_404(Document, document_id)
    return {"title": document.title}


# endregion
