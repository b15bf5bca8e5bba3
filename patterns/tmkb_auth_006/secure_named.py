"""Updates of a profile and of a document that take each value out of the body by name."""

from flask import Blueprint, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db

# region example
bp = Blueprint("profile", __name__)


@bp.patch("/me")
@login_required
def update_me():
    body = request.get_json()
    current_user.name = body.get("name", current_user.name)
    db.session.commit()
    return "", 204


@bp.patch("/documents/<int:document_id>")
@login_required
def update_document(document_id):
    reachable = db.select(Document).filter_by(organization_id=current_user.organization_id)
    document = db.first_or_404(reachable.filter_by(id=document_id))
    body = request.get_json()
    document.title = body.get("title", document.title)
    db.session.commit()
    return "", 204


# endregion
