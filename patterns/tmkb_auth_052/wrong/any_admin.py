"""The membership is checked, but an admin membership of any organization is enough."""

from app import Membership, Project, bp
from flask import abort, g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.before_request
@login_required
def choose_org():
    if request.method == "OPTIONS":
        return
    org = request.headers.get("X-Org-Id", str(current_user.organization_id))
    if not org.isdecimal() or len(org) > 9:
        abort(400)
    g.membership = db.first_or_404(db.select(Membership).filter_by(user_id=current_user.id, organization_id=int(org)))
    g.organization_id = g.membership.organization_id


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    admin = db.select(Membership).filter_by(user_id=current_user.id, role="admin")
    if db.session.scalars(admin).first() is None:
        abort(403)
    project = db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=g.organization_id))
    db.session.delete(project)
    db.session.commit()
    return "", 204
