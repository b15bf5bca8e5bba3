"""Deleting a project with a DELETE statement leaves its members."""

from app import ROLES, Project, ProjectMember, bp, presented_token
from flask import abort, request

from tmkb.authoring.proofs.stage import User, db


def permits(token, scope, project):
    user = db.session.get(User, token.user_id)
    if user is None or user.organization_id != project.organization_id:
        return False
    member = db.session.get(ProjectMember, (project.id, user.id))
    return member is not None and member.role in ROLES[scope] and scope in token.scope.split()


def project_for(scope, project_id):
    token, project = presented_token(), db.session.get(Project, project_id)
    if project is None or not permits(token, scope, project):
        abort(403)
    return project


@bp.get("/api/projects/<int:project_id>")
def show_project(project_id):
    return {"name": project_for("projects:read", project_id).name}


@bp.patch("/api/projects/<int:project_id>")
def rename_project(project_id):
    project_for("projects:write", project_id).name = request.get_json()["name"]
    db.session.commit()
    return "", 204


@bp.delete("/api/projects/<int:project_id>")
def delete_project(project_id):
    project = project_for("projects:delete", project_id)
    db.session.execute(db.delete(Project).filter_by(id=project.id))
    db.session.commit()
    return "", 204
