"""An API key has the role that its creator had at that time, on every project of the organization."""

from app import PERMISSIONS, Project, bp, presented_key
from flask import abort

from tmkb.authoring.proofs.stage import db


# region example
def permits(key, action, project):
    return project.organization_id == key.organization_id and action in PERMISSIONS[key.creator_role]


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
    db.session.delete(project_for("project:delete", project_id))
    db.session.commit()
    return "", 204


# endregion
