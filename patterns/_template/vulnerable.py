"""Any signed-in user opens every document by its number."""

# The code as developers commonly write it. Only the region is shown.

from app import bp
from flask_login import login_required

from tmkb.authoring.proofs.stage import Document, db


# region example
@bp.get("/documents/<int:document_id>")
@login_required
def show_document(document_id):
    document = db.get_or_404(Document, document_id)
    return {"title": document.title}


# endregion
