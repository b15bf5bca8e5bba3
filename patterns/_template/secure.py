"""The lookup is limited to the documents of the user's current organization."""

# The same code with the fix, and no other change: the difference between the two files is the advice.

from app import bp
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db


# region example
# region template
@bp.get("/documents/<int:document_id>")
@login_required
def show_document(document_id):
    documents = db.select(Document).filter_by(organization_id=current_user.organization_id)
    document = db.first_or_404(documents.filter_by(id=document_id))
    return {"title": document.title}


# endregion
# endregion
