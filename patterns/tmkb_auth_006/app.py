"""Members and documents of organizations. A version of the code writes them from request bodies."""

from flask import Blueprint, abort
from flask_login import current_user

from tmkb.authoring.proofs.stage import Document, User, db

bp = Blueprint("profile", __name__)


def document_or_404(document_id):
    return db.first_or_404(db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id))


def member_or_404(user_id):
    """Return a member of the organization to its admins."""
    member = db.first_or_404(db.select(User).filter_by(id=user_id, organization_id=current_user.organization_id))
    if current_user.role != "admin":
        abort(403)
    return member


def state_users():
    users = db.session.scalars(db.select(User).order_by(User.id))
    return [[user.id, user.name, user.role, user.organization_id] for user in users]


def state_documents():
    """Return the different documents; one that is created with the same values is not another."""
    columns = Document.title, Document.owner_id, Document.organization_id, Document.state
    return [list(row) for row in db.session.execute(db.select(*columns).distinct().order_by(*columns))]
