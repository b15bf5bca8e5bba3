"""Each key of the request body becomes an attribute of the model."""

from app import bp, document_or_404, member_or_404
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db


# region example
def assign(row, body):
    for field, value in body.items():
        setattr(row, field, value)


@bp.patch("/me")
@login_required
def update_me():
    assign(current_user, request.get_json())
    db.session.commit()
    return "", 204


@bp.patch("/members/<int:user_id>")
@login_required
def update_member(user_id):
    assign(member_or_404(user_id), request.get_json())
    db.session.commit()
    return "", 204


@bp.post("/documents")
@login_required
def create_document():
    document = Document(owner_id=current_user.id, organization_id=current_user.organization_id)
    assign(document, request.get_json())
    db.session.add(document)
    db.session.commit()
    return {"id": document.id}, 201


@bp.patch("/documents/<int:document_id>")
@login_required
def update_document(document_id):
    assign(document_or_404(document_id), request.get_json())
    db.session.commit()
    return "", 204


# endregion
