"""Projects that apps call with access tokens of users.

A row stands for each token that an authorization server has issued. How an app gets its token is left out.
"""

import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db

ROLES = {
    "projects:read": {"viewer", "editor", "owner"},
    "projects:write": {"editor", "owner"},
    "projects:delete": {"owner"},
}


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    members = relationship("ProjectMember", cascade="all, delete-orphan")  # because the id can be used again


class ProjectMember(db.Model):
    project_id = mapped_column(db.ForeignKey("project.id"), primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)
    role = mapped_column(db.String, nullable=False)


class AccessToken(db.Model):
    token = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    user_id = mapped_column(db.Integer, nullable=False)
    scope = mapped_column(db.String, nullable=False)


bp = Blueprint("projects", __name__)


def presented_token():
    return db.session.get(AccessToken, request.headers.get("Authorization", "").removeprefix("Bearer ")) or abort(401)


@bp.post("/projects")
@login_required
def create_project():
    project = Project(name=request.get_json()["name"], organization_id=current_user.organization_id)
    db.session.add(project)
    db.session.flush()
    db.session.add(ProjectMember(project_id=project.id, user_id=current_user.id, role="owner"))
    db.session.commit()
    return {"id": project.id}, 201


@bp.post("/tokens")
@login_required
def consent():
    token = AccessToken(user_id=current_user.id, scope=request.get_json()["scope"])
    db.session.add(token)
    db.session.commit()
    return {"token": token.token}, 201


def event_hire(user):
    """Add a user to Acme."""
    db.session.add(User(name=user, organization_id=1))


def event_set_member(project, user, role):
    """Set the role of a user in a project; None removes the user from the project."""
    user_id = db.session.scalars(db.select(User.id).filter_by(name=user)).one()
    if role is None:
        db.session.delete(db.session.get(ProjectMember, (project, user_id)))
    else:
        db.session.merge(ProjectMember(project_id=project, user_id=user_id, role=role))


def event_give(project, organization_id):
    """Give a project to another organization."""
    db.session.get(Project, project).organization_id = organization_id


def state_projects():
    return list(db.session.scalars(db.select(Project.name).order_by(Project.id)))


def state_tokens():
    return db.session.scalar(db.select(db.func.count()).select_from(AccessToken))
