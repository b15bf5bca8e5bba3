"""An API key may do what was granted to it, on its project, as far as its creator may do the same today."""

import hashlib

from flask import Blueprint, abort, jsonify, request

from tmkb.authoring.proofs.stage import User, db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    visits = db.Column(db.Integer, nullable=False)


class ApiKey(db.Model):
    digest = db.Column(db.String, primary_key=True)
    creator_id = db.Column(db.Integer, nullable=False)
    creator_role = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    project_id = db.Column(db.Integer, nullable=False)
    grants = db.Column(db.JSON, nullable=False)


# region example
bp = Blueprint("projects", __name__)

RIGHTS = {"admin": {"metrics:read", "project:delete"}, "member": {"metrics:read"}}


def presented_key():
    digest = hashlib.sha256(request.headers.get("X-Api-Key", "").encode()).hexdigest()
    return db.session.get(ApiKey, digest) or abort(401)


def project_for(action, project_id):
    # region template
    key = presented_key()
    creator = db.session.get(User, key.creator_id)
    if creator is None or creator.organization_id != key.organization_id:
        abort(403)
    if project_id != key.project_id or action not in RIGHTS[creator.role].intersection(key.grants):
        abort(403)
    # endregion
    return db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=key.organization_id))


@bp.get("/projects/<int:project_id>/metrics")
def read_metrics(project_id):
    return jsonify(visits=project_for("metrics:read", project_id).visits)


@bp.delete("/projects/<int:project_id>")
def delete_project(project_id):
    db.session.delete(project_for("project:delete", project_id))
    db.session.commit()
    return "", 204


# endregion
