"""Projects that belong to organizations. Collaborators and share links open single projects to others."""

import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, User, db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.ForeignKey("organization.id"), nullable=False)


class Collaborator(db.Model):
    project_id = mapped_column(db.ForeignKey("project.id"), primary_key=True)
    user_id = mapped_column(db.ForeignKey("user.id"), primary_key=True)


class ShareLink(db.Model):
    token = mapped_column(db.String, primary_key=True)
    project_id = mapped_column(db.ForeignKey("project.id"), nullable=False)


class Transfer(db.Model):
    """An offer of a project to an organization."""

    project_id = mapped_column(db.ForeignKey("project.id"), primary_key=True)
    organization_id = mapped_column(db.ForeignKey("organization.id"), primary_key=True)
    offered_by = mapped_column(db.Integer, nullable=False)


bp = Blueprint("projects", __name__)


def own_project(project_id):
    """Return the project, locked, so that it keeps its organization until the commit."""
    projects = db.select(Project).filter_by(id=project_id, organization_id=current_user.organization_id)
    return db.first_or_404(projects.with_for_update(read=True))


def recipient():
    return db.get_or_404(Organization, request.get_json()["organization_id"])


@bp.post("/projects")
@login_required
def create_project():
    project = Project(name=request.get_json()["name"], organization_id=current_user.organization_id)
    db.session.add(project)
    db.session.commit()
    return {"id": project.id}, 201


@bp.get("/projects/<int:project_id>")
@login_required
def show_project(project_id):
    project = db.get_or_404(Project, project_id)
    collaborator = db.session.get(Collaborator, (project_id, current_user.id))
    if project.organization_id != current_user.organization_id and collaborator is None:
        abort(404)
    return {"name": project.name}


@bp.post("/projects/<int:project_id>/collaborators")
@login_required
def add_collaborator(project_id):
    db.session.add(Collaborator(project_id=own_project(project_id).id, user_id=request.get_json()["user_id"]))
    db.session.commit()
    return "", 204


@bp.post("/projects/<int:project_id>/links")
@login_required
def share_project(project_id):
    token = secrets.token_urlsafe()
    db.session.add(ShareLink(token=token, project_id=own_project(project_id).id))
    db.session.commit()
    return {"token": token}, 201


@bp.get("/shared/<token>")
def show_shared(token):
    link = db.get_or_404(ShareLink, token)
    return {"name": db.session.get(Project, link.project_id).name}


@bp.delete("/projects/<int:project_id>/transfer")
@login_required
def withdraw_offers(project_id):
    if current_user.role != "admin":
        abort(403)
    db.session.execute(db.delete(Transfer).filter_by(project_id=own_project(project_id).id))
    db.session.commit()
    return "", 204


def event_more_people():
    """Add Carol, who has no organization, Dave, a member of Globex, and Ivan, the administrator of Initech."""
    db.session.add(Organization(id=3, name="Initech"))
    db.session.add(User(id=4, name="carol"))
    db.session.add(User(id=5, name="dave", organization_id=2))
    db.session.add(User(id=6, name="ivan", role="admin", organization_id=3))


def event_return_project(project):
    """Give a project back to Acme, as the support does."""
    db.session.get(Project, project).organization_id = 1


def state_projects():
    rows = db.session.execute(db.select(Project.id, Project.organization_id).order_by(Project.id))
    return [list(row) for row in rows]


def state_grants():
    collaborators = db.session.execute(db.select(Collaborator.project_id, Collaborator.user_id).order_by("user_id"))
    links = db.session.scalars(db.select(ShareLink.project_id).order_by(ShareLink.project_id))
    return [[list(row) for row in collaborators], list(links)]


def state_offers():
    columns = Transfer.project_id, Transfer.organization_id, Transfer.offered_by
    return [list(row) for row in db.session.execute(db.select(*columns).order_by(*columns))]
