"""Grants are deleted, but the offer stays in the table after it was accepted."""

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
    project.organization_id = organization_id
    for grants in (Collaborator, ShareLink):
        db.session.execute(db.delete(grants).filter_by(project_id=project.id))


@bp.post("/projects/<int:project_id>/transfer/accept")
@login_required
def accept_project(project_id):
    if current_user.role != "admin":
        abort(403)
    offer = db.first_or_404(
        db.select(Transfer).filter_by(project_id=project_id, organization_id=current_user.organization_id)
    )
    project = db.session.get(Project, project_id)
    sender = db.session.get(User, offer.offered_by)
    if sender is None or sender.organization_id != project.organization_id or sender.role != "admin":
        abort(404)
    move(project, current_user.organization_id)
    db.session.commit()
    return "", 204
