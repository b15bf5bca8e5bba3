"""The grants are deleted before the project is moved, and one that is created in between stays."""

from app import Collaborator, Project, ShareLink, Transfer, bp, own_project, recipient
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


@bp.post("/projects/<int:project_id>/transfer")
@login_required
def offer_project(project_id):
    project = own_project(project_id)
    if current_user.role != "admin":
        abort(403)
    db.session.merge(Transfer(project_id=project.id, organization_id=recipient().id, offered_by=current_user.id))
    db.session.commit()
    return "", 202


def move(project, organization_id):
    for grants in (Collaborator, ShareLink, Transfer):
        db.session.execute(db.delete(grants).filter_by(project_id=project.id))
    project.organization_id = organization_id


@bp.post("/projects/<int:project_id>/transfer/accept")
@login_required
def accept_project(project_id):
    if current_user.role != "admin":
        abort(403)
    project = db.get_or_404(Project, project_id)
    senders = db.select(User.id).filter_by(organization_id=project.organization_id, role="admin")
    offer = db.delete(Transfer).filter_by(project_id=project.id, organization_id=current_user.organization_id)
    accepted = db.session.scalar(offer.where(Transfer.offered_by.in_(senders)).returning(Transfer.offered_by))
    if accepted is None:
        abort(404)
    move(project, current_user.organization_id)
    db.session.commit()
    return "", 204
