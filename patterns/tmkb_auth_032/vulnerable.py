"""Any member offers a project, anyone accepts for the recipient, and all earlier grants stay."""

from app import Project, Transfer, bp, own_project, recipient
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/projects/<int:project_id>/transfer")
@login_required
def offer_project(project_id):
    project = own_project(project_id)
    db.session.merge(Transfer(project_id=project.id, organization_id=recipient().id, offered_by=current_user.id))
    db.session.commit()
    return "", 202


@bp.post("/projects/<int:project_id>/transfer/accept")
@login_required
def accept_project(project_id):
    offer = db.first_or_404(db.select(Transfer).filter_by(project_id=project_id))
    project = db.session.get(Project, project_id)
    project.organization_id = offer.organization_id
    db.session.commit()
    return "", 204


# endregion
