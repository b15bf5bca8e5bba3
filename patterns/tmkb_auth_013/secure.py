"""A comment is looked up through the project in the address; under another project it does not exist."""

from flask import Blueprint, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    private = db.Column(db.Boolean, nullable=False)
    lead_id = db.Column(db.Integer, nullable=False)


class Comment(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    text = db.Column(db.String, nullable=False)
    project_id = db.Column(db.ForeignKey("project.id"), nullable=False)


# region example
bp = Blueprint("comments", __name__, url_prefix="/projects/<int:project_id>/comments")


def open_projects():
    own = db.select(Project).filter_by(organization_id=current_user.organization_id)
    return own.where(~Project.private | (Project.lead_id == current_user.id))


# region template
def find_comment(project_id, comment_id):
    project = db.first_or_404(open_projects().filter_by(id=project_id))
    return db.first_or_404(db.select(Comment).filter_by(id=comment_id, project_id=project.id))


# endregion


@bp.get("/<int:comment_id>")
@login_required
def show_comment(project_id, comment_id):
    return {"text": find_comment(project_id, comment_id).text}


@bp.put("/<int:comment_id>")
@login_required
def edit_comment(project_id, comment_id):
    find_comment(project_id, comment_id).text = request.get_json()["text"]
    db.session.commit()
    return "", 204


# endregion
