from flask import Blueprint, Response, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Export
from worklane.queue import enqueue
from worklane.requests import body
from worklane.services import audit, exports

blueprint = Blueprint("exports", __name__, url_prefix="/exports")


@blueprint.get("")
@login_required
def index():
    query = select(Export).filter_by(organization_id=g.organization.id, requester_id=current_user.id)
    return jsonify([serializers.export(each) for each in db.session.scalars(query.order_by(Export.id.desc()))])


@blueprint.post("")
@login_required
def create():
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    data = body("kind")
    if data["kind"] not in exports.MAKERS:
        abort(400, "Unknown kind")
    export = Export(organization_id=g.organization.id, requester_id=current_user.id, kind=data["kind"])
    db.session.add(export)
    db.session.flush()
    enqueue(exports.make_export, export_id=export.id)
    audit.record("export.created", kind=export.kind)
    db.session.commit()
    return jsonify(serializers.export(export)), 202


@blueprint.get("/<int:export_id>")
@login_required
def show(export_id):
    return jsonify(serializers.export(_export(export_id)))


@blueprint.get("/<int:export_id>/download")
@login_required
def download(export_id):
    export = _export(export_id)
    if export.status != "ready":
        abort(409, "The export is not ready")
    headers = {"Content-Disposition": f'attachment; filename="{export.kind}.csv"'}
    return Response(export.content, mimetype="text/csv", headers=headers)


def _export(export_id):
    export = db.session.get(Export, export_id)
    if export is None or export.organization_id != g.organization.id:
        abort(404)
    return export
