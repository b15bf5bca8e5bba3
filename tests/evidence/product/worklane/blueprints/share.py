import secrets

from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import clock, serializers
from worklane.extensions import db
from worklane.models import ShareLink
from worklane.policy import can, document_or_404
from worklane.requests import body
from worklane.services import audit

blueprint = Blueprint("share", __name__)


@blueprint.get("/documents/<int:document_id>/links")
@login_required
def index(document_id):
    document = document_or_404(document_id, "document.edit")
    query = select(ShareLink).filter_by(document_id=document.id).order_by(ShareLink.id)
    return jsonify([serializers.share_link(each) for each in db.session.scalars(query)])


@blueprint.post("/documents/<int:document_id>/links")
@login_required
def create(document_id):
    document = document_or_404(document_id, "document.edit")
    try:
        expires_at = clock.parse(body().get("expires_at"))
    except (TypeError, ValueError):
        abort(400, "expires_at is no time")
    link = ShareLink(
        document_id=document.id,
        creator_id=current_user.id,
        token=secrets.token_urlsafe(24),
        expires_at=expires_at,
    )
    db.session.add(link)
    audit.record("link.created", document_id=document.id)
    db.session.commit()
    return jsonify(serializers.share_link(link)), 201


@blueprint.delete("/links/<int:link_id>")
@login_required
def revoke(link_id):
    link = db.session.get(ShareLink, link_id)
    if link is None or not can(g.membership, "document.edit", link.document):
        abort(404)
    link.revoked_at = clock.now()
    db.session.commit()
    return "", 204


@blueprint.get("/s/<token>")
def open_link(token):
    """What people without an account see."""
    link = db.session.scalar(select(ShareLink).filter_by(token=token))
    if link is None or link.revoked_at or (link.expires_at and link.expires_at < clock.now()):
        abort(404)
    return jsonify(title=link.document.title, body=link.document.body)
