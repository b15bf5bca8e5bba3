"""Administrators open every document: the role is checked, but not its organization."""

# A fix that people write and that does not hold. attacks.yaml says which attacks succeed against it.

from app import bp
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db


@bp.get("/documents/<int:document_id>")
@login_required
def show_document(document_id):
    documents = db.select(Document)
    if current_user.role != "admin":
        documents = documents.filter_by(organization_id=current_user.organization_id)
    document = db.first_or_404(documents.filter_by(id=document_id))
    return {"title": document.title}
