from flask import Blueprint, abort, g, jsonify
from flask_login import current_user
from sqlalchemy import select

from worklane import clock, serializers
from worklane.extensions import db
from worklane.models import ApiKey, Project
from worklane.policy import require
from worklane.requests import body
from worklane.services import audit, keys

blueprint = Blueprint("keys", __name__, url_prefix="/keys")


@blueprint.get("")
@require("keys.manage")
def index():
    query = select(ApiKey).filter_by(organization_id=g.organization.id).order_by(ApiKey.id)
    return jsonify([serializers.api_key(each) for each in db.session.scalars(query)])


@blueprint.post("")
@require("keys.manage")
def create():
    data = body("name", "scopes")
    if unknown := [scope for scope in data["scopes"] if scope not in keys.SCOPES]:
        abort(400, f"Unknown scopes: {unknown}")
    if data.get("project_id") is not None:
        project = db.session.get(Project, data["project_id"])
        if project is None or project.organization_id != g.organization.id:
            abort(404, "No such project")
    key, key_hash = keys.generate()
    row = ApiKey(
        organization_id=g.organization.id,
        creator_id=current_user.id,
        name=data["name"],
        key_hash=key_hash,
        scopes=data["scopes"],
        project_id=data.get("project_id"),
    )
    db.session.add(row)
    audit.record("key.created", name=row.name)
    db.session.commit()
    return jsonify(serializers.api_key(row) | {"key": key}), 201


@blueprint.delete("/<int:key_id>")
@require("keys.manage")
def revoke(key_id):
    row = db.session.scalar(select(ApiKey).filter_by(id=key_id, organization_id=g.organization.id)) or abort(404)
    row.revoked_at = clock.now()
    audit.record("key.revoked", name=row.name)
    db.session.commit()
    return "", 204
