"""Another tenant's project answers like one that does not exist, and its name is free to everybody else."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db

# region example
bp = Blueprint("projects", __name__, url_prefix="/projects")


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    slug = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    __table_args__ = (db.UniqueConstraint("organization_id", "slug"),)


@bp.post("")
@login_required
def create_project():
    slug = request.get_json()["slug"]
    if db.session.scalar(db.select(Project).filter_by(slug=slug, organization_id=current_user.organization_id)):
        abort(409, "This name is taken.")
    project = Project(slug=slug, organization_id=current_user.organization_id)
    db.session.add(project)
    db.session.commit()
    return {"id": project.id}, 201


@bp.delete("/<int:project_id>")
@login_required
def delete_project(project_id):
    # region template
    own = db.select(Project).filter_by(organization_id=current_user.organization_id)
    project = db.first_or_404(own.filter_by(id=project_id))
    if current_user.role != "admin":
        abort(403, "Only administrators delete projects.")
    # endregion
    db.session.delete(project)
    db.session.commit()
    return "", 204


# endregion
