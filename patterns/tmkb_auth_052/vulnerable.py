"""A header names the organization, and the role of the account applies in every organization."""

from app import Project, bp
from flask import abort, g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
@login_required
def choose_org():
    if request.method == "OPTIONS":
        return
    g.organization_id = request.headers.get("X-Org-Id", current_user.organization_id, type=int)


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    if current_user.role != "admin":
        abort(403)
    project = db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=g.organization_id))
    db.session.delete(project)
    db.session.commit()
    return "", 204


# endregion
