"""Access is checked on the project in the address; the comment is then loaded by its own number."""

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


def find_comment(project_id, comment_id):
    db.first_or_404(open_projects().filter_by(id=project_id))
    return db.get_or_404(Comment, comment_id)


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
