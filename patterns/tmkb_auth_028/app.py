"""Projects of organizations, and the API keys that users create for one project."""

import hashlib
import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

ACTIONS = ("metrics:read", "project:delete", "project:delete_drafts")
PERMISSIONS = {"admin": {"metrics:read", "project:delete"}, "member": {"metrics:read"}}


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    visits = mapped_column(db.Integer, nullable=False)


class ApiKey(db.Model):
    digest = mapped_column(db.String, primary_key=True)
    creator_id = mapped_column(db.Integer, nullable=False)
    creator_role = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    project_id = mapped_column(db.Integer, nullable=False)
    grants = mapped_column(db.String, nullable=False)


bp = Blueprint("projects", __name__)


def digest_of(key):
    return hashlib.sha256(key.encode()).hexdigest()


def presented_key():
    return db.session.get(ApiKey, digest_of(request.headers.get("X-Api-Key", ""))) or abort(401)


@bp.post("/projects")
@login_required
def create_project():
    project = Project(organization_id=current_user.organization_id, visits=request.get_json()["visits"])
    db.session.add(project)
    db.session.commit()
    return {"id": project.id}, 201


@bp.post("/projects/<int:project_id>/keys")
@login_required
def create_key(project_id):
    db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=current_user.organization_id))
    grants = request.get_json()["grants"]
    if not isinstance(grants, list) or any(grant not in ACTIONS for grant in grants):
        abort(422)
    key = secrets.token_urlsafe()
    row = ApiKey(digest=digest_of(key), project_id=project_id, grants=" ".join(grants))
    row.creator_id, row.creator_role = current_user.id, current_user.role
    row.organization_id = current_user.organization_id
    db.session.add(row)
    db.session.commit()
    return {"key": key}, 201


def event_give(project, organization_id):
    """Give a project to another organization."""
    db.session.get(Project, project).organization_id = organization_id


def event_first_digest():
    return db.session.scalars(db.select(ApiKey.digest)).first()


def state_projects():
    return list(db.session.scalars(db.select(Project.id).order_by(Project.id)))


def state_keys():
    return db.session.scalar(db.select(db.func.count()).select_from(ApiKey))
