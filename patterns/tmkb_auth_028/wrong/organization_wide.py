"""The key is limited to its grants, but works on every project of the organization."""

from app import PERMISSIONS, Project, bp, presented_key
from flask import abort

from tmkb.authoring.proofs.stage import User, db


def permits(key, action, project_id):
    creator = db.session.get(User, key.creator_id)
    if creator is None or creator.organization_id != key.organization_id:
        return False
    return action in key.grants and action in PERMISSIONS.get(creator.role, ())


def project_for(action, project_id):
    key = presented_key()
    if not permits(key, action, project_id):
        abort(403)
    return db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=key.organization_id))


@bp.get("/projects/<int:project_id>/metrics")
def read_metrics(project_id):
    return {"visits": project_for("metrics:read", project_id).visits}


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    db.session.delete(project_for("project:delete", project_id))
    db.session.commit()
    return "", 204
