"""The key's own grants and project decide; nothing looks at its creator."""

from app import Project, bp, presented_key
from flask import abort

from tmkb.authoring.proofs.stage import db


def permits(key, action, project_id):
    return project_id == key.project_id and action in key.grants


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
