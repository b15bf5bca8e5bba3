"""The header selects one of the user's memberships, and the role of that membership applies."""

from app import Membership, Project, bp
from flask import abort, g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
@bp.before_request
@login_required
def choose_org():
    if request.method == "OPTIONS":
        return
    org = request.headers.get("X-Org-Id", str(current_user.organization_id))
    if not org.isdecimal() or len(org) > 9:
        abort(400)
    g.membership = db.get_or_404(Membership, {"user_id": current_user.id, "organization_id": int(org)})
    # endregion
    g.organization_id = g.membership.organization_id


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    if g.membership.role != "admin":
        abort(403)
    project = db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=g.organization_id))
    db.session.delete(project)
    db.session.commit()
    return "", 204


# endregion
