from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.clock import now
from worklane.extensions import db
from worklane.models import Project, ProjectMember
from worklane.policy import require, visible_projects
from worklane.requests import body, page
from worklane.services import audit

blueprint = Blueprint("projects", __name__, url_prefix="/projects")


@blueprint.get("")
@login_required
def index():
    query = visible_projects(g.membership).order_by(Project.name)
    return jsonify([serializers.project(each) for each in db.session.scalars(page(query))])


@blueprint.post("")
@require("project.create")
def create():
    data = body("name")
    project = Project(
        organization_id=g.organization.id,
        name=data["name"],
        description=data.get("description", ""),
        visibility=_visibility(data),
        owner_id=current_user.id,
    )
    db.session.add(project)
    db.session.flush()
    audit.record("project.created", project_id=project.id)
    db.session.commit()
    return jsonify(serializers.project(project)), 201


@blueprint.get("/<int:project_id>")
@require("project.read")
def show(project):
    return jsonify(serializers.project(project))


@blueprint.patch("/<int:project_id>")
@require("project.manage")
def change(project):
    data = body()
    project.name = data.get("name", project.name)
    project.description = data.get("description", project.description)
    if "visibility" in data:
        project.visibility = _visibility(data)
    db.session.commit()
    return jsonify(serializers.project(project))


@blueprint.post("/<int:project_id>/archive")
@require("project.manage")
def archive(project):
    project.archived_at = now()
    audit.record("project.archived", project_id=project.id)
    db.session.commit()
    return jsonify(serializers.project(project))


@blueprint.get("/<int:project_id>/members")
@require("project.read")
def members(project):
    return jsonify([serializers.project_member(each) for each in project.members])


@blueprint.post("/<int:project_id>/members")
@require("project.manage")
def add_member(project):
    """Add a member of the organization to the project, or change the role."""
    data = body("user_id")
    role = data.get("role", "editor")
    if role not in ("viewer", "editor", "manager"):
        abort(400, "Unknown role")
    if data["user_id"] not in [each.user_id for each in project.organization.memberships]:
        abort(404, "No such member")
    row = _member(project, data["user_id"])
    if row is None:
        row = ProjectMember(project_id=project.id, user_id=data["user_id"])
        db.session.add(row)
    row.role = role
    audit.record("project.member_added", project_id=project.id, user_id=row.user_id)
    db.session.commit()
    return jsonify(serializers.project_member(row)), 201


@blueprint.delete("/<int:project_id>/members/<int:user_id>")
@require("project.manage")
def remove_member(project, user_id):
    row = _member(project, user_id)
    if row is None:
        abort(404)
    db.session.delete(row)
    audit.record("project.member_removed", project_id=project.id, user_id=user_id)
    db.session.commit()
    return "", 204


def _member(project, user_id):
    return db.session.scalar(select(ProjectMember).filter_by(project_id=project.id, user_id=user_id))


def _visibility(data):
    visibility = data.get("visibility", "organization")
    if visibility not in ("organization", "private"):
        abort(400, "Unknown visibility")
    return visibility
