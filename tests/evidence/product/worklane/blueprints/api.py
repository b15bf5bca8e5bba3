"""The API for scripts: Authorization: Bearer wl_..."""

import functools

from flask import Blueprint, abort, g, jsonify, request
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Task
from worklane.services import keys

blueprint = Blueprint("api", __name__, url_prefix="/api/v1")


def key_required(view):
    @functools.wraps(view)
    def guarded(*args, **kwargs):
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        g.key = keys.find(key) if scheme == "Bearer" else None
        if g.key is None:
            abort(401, "Unknown key")
        db.session.commit()
        return view(*args, **kwargs)

    return guarded


@blueprint.get("/me")
@key_required
def me():
    return jsonify(organization=serializers.organization(g.key.organization), **serializers.api_key(g.key))


@blueprint.get("/tasks")
@key_required
def tasks():
    if "tasks:read" not in g.key.scopes:
        abort(403, "The key lacks tasks:read")
    query = select(Task).filter_by(organization_id=g.key.organization_id).order_by(Task.id)
    if g.key.project_id is not None:
        query = query.filter_by(project_id=g.key.project_id)
    return jsonify([serializers.task(each) for each in db.session.scalars(query.limit(200))])


@blueprint.get("/tasks/<int:task_id>")
@key_required
def task(task_id):
    found = db.session.get(Task, task_id)
    if found is None or found.organization_id != g.key.organization_id:
        abort(404)
    return jsonify(serializers.task(found))
