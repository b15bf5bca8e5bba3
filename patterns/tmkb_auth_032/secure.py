"""A project is offered by an administrator, moves when the other side accepts, and all earlier grants end with that."""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


class Collaborator(db.Model):
    project_id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, primary_key=True)


class ShareLink(db.Model):
    token = db.Column(db.String, primary_key=True)
    project_id = db.Column(db.Integer, nullable=False)


class Transfer(db.Model):
    """A project is offered to an organization."""

    project_id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("projects", __name__)


@bp.get("/projects/<int:project_id>")
@login_required
def show_project(project_id):
    project = db.get_or_404(Project, project_id)
    collaborator = db.session.get(Collaborator, (project_id, current_user.id))
    if project.organization_id != current_user.organization_id and collaborator is None:
        abort(404)
    return jsonify(name=project.name)


@bp.get("/shared/<token>")
def show_shared(token):
    link = db.get_or_404(ShareLink, token)
    return jsonify(name=db.session.get(Project, link.project_id).name)


@bp.post("/projects/<int:project_id>/transfer")
@login_required
def transfer(project_id):
    own = db.select(Project).filter_by(id=project_id, organization_id=current_user.organization_id)
    project = db.first_or_404(own)
    if current_user.role != "admin":
        abort(403)
    db.session.merge(Transfer(project_id=project.id, organization_id=request.json["organization_id"]))
    db.session.commit()
    return "", 202


@bp.post("/projects/<int:project_id>/transfer/accept")
@login_required
def accept_transfer(project_id):
    offers = db.select(Transfer).filter_by(project_id=project_id, organization_id=current_user.organization_id)
    offer = db.first_or_404(offers)
    if current_user.role != "admin":
        abort(403)
    # region template
    project = db.session.get(Project, offer.project_id)
    project.organization_id = offer.organization_id
    for grants in (Collaborator, ShareLink, Transfer):
        db.session.execute(db.delete(grants).filter_by(project_id=project.id))
    db.session.commit()
    # endregion
    return "", 204


# endregion
