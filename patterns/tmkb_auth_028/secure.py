"""An API key may do what it was granted, on its project, while its creator has the same permission."""

from app import PERMISSIONS, ApiKey, Project, bp, presented_key
from flask import abort

from tmkb.authoring.proofs.stage import User, db


# region example
# region template
def permits(key, action, project):
    org = project.organization_id
    user = db.select(User.role).filter_by(id=key.creator_id, organization_id=org)
    if key.project_id != project.id or key.organization_id != org:
        return False
    return action in key.grants.split() and action in PERMISSIONS.get(db.session.scalar(user), ())


# endregion


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


# endregion
