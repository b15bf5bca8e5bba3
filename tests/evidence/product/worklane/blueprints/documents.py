from flask import Blueprint, Response, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Document
from worklane.policy import document_or_404, require
from worklane.requests import body, page
from worklane.services import audit, documents

blueprint = Blueprint("documents", __name__)


@blueprint.get("/projects/<int:project_id>/documents")
@require("project.read")
def index(project):
    query = select(Document).filter_by(project_id=project.id, deleted_at=None)
    if g.membership.role == "guest":
        query = query.filter_by(status="published")
    rows = db.session.scalars(page(query.order_by(Document.title)))
    return jsonify([serializers.document(each) for each in rows])


@blueprint.post("/projects/<int:project_id>/documents")
@require("project.edit")
def create(project):
    data = body("title")
    document = documents.create(project, current_user, data["title"], data.get("body", ""))
    db.session.commit()
    return jsonify(serializers.document(document, with_body=True)), 201


@blueprint.get("/documents/<int:document_id>")
@login_required
def show(document_id):
    document = document_or_404(document_id)
    return jsonify(serializers.document(document, with_body=True))


@blueprint.patch("/documents/<int:document_id>")
@login_required
def change(document_id):
    document = document_or_404(document_id, "document.edit")
    data = body()
    documents.change(document, current_user, data.get("title"), data.get("body"))
    db.session.commit()
    return jsonify(serializers.document(document, with_body=True))


@blueprint.post("/documents/<int:document_id>/publish")
@login_required
def publish(document_id):
    document = document_or_404(document_id, "document.edit")
    documents.publish(document)
    db.session.commit()
    return jsonify(serializers.document(document))


@blueprint.delete("/documents/<int:document_id>")
@login_required
def delete(document_id):
    document = document_or_404(document_id, "document.edit")
    documents.delete(document)
    audit.record("document.deleted", document_id=document.id)
    db.session.commit()
    return "", 204


@blueprint.get("/documents/<int:document_id>/download")
@login_required
def download(document_id):
    """The document as a text file."""
    document = db.session.get(Document, document_id)
    if document is None or document.organization_id != g.organization.id:
        abort(404)
    headers = {"Content-Disposition": f'attachment; filename="document-{document.id}.txt"'}
    return Response(f"{document.title}\n\n{document.body}", mimetype="text/plain", headers=headers)
