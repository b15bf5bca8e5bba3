"""A header selects among the caller's memberships, and the role is the one of the membership it selects."""

from flask import Blueprint, abort, g, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Membership(db.Model):
    user_id = db.Column(db.ForeignKey("user.id"), primary_key=True)
    organization_id = db.Column(db.ForeignKey("organization.id"), primary_key=True)
    role = db.Column(db.String, nullable=False)


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)


# region example
bp = Blueprint("projects", __name__)


# region template
@bp.before_request
@login_required
def choose_organization():
    chosen = request.headers.get("X-Org-Id", current_user.organization_id, type=int)
    mine = db.select(Membership).filter_by(user_id=current_user.id, organization_id=chosen)
    g.membership = db.first_or_404(mine)
    g.organization_id = g.membership.organization_id
    # endregion


@bp.get("/projects")
def projects():
    return {"projects": list(db.session.scalars(db.select(Project.id).filter_by(organization_id=g.organization_id)))}


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    project = db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=g.organization_id))
    if g.membership.role != "admin":
        abort(403)
    db.session.delete(project)
    db.session.commit()
    return "", 204


# endregion
