"""A key without a creator falls back to the role that it has copied."""

from app import PERMISSIONS, ApiKey, Project, bp, presented_key
from flask import abort

from tmkb.authoring.proofs.stage import User, db


def permits(key, action, project):
    org, creator = project.organization_id, db.session.get(User, key.creator_id)
    if key.project_id != project.id or key.organization_id != org:
        return False
    if creator is not None and creator.organization_id != org:
        return False
    role = key.creator_role if creator is None else creator.role
    return action in key.grants.split() and action in PERMISSIONS.get(role, ())


def project_for(action, project_id):
    key, project = presented_key(), db.session.get(Project, project_id)
    if project is None or not permits(key, action, project):
        abort(403)
    return project


@bp.get("/projects/<int:project_id>/metrics")
def read_metrics(project_id):
    return {"visits": project_for("metrics:read", project_id).visits}


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    project = project_for("project:delete", project_id)
    db.session.execute(db.delete(ApiKey).filter_by(project_id=project.id))
    db.session.delete(project)
    db.session.commit()
    return "", 204
