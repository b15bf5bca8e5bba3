"""A role belongs to the organization that has connected it first."""

import jwt
from app import (
    AUDIENCE,
    ISSUER,
    KEY,
    Connection,
    Site,
    assume_role,
    bearer,
    bp,
    own_connection,
)
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def assume(connection):
    others = db.select(Connection).where(Connection.organization_id != connection.organization_id)
    if db.session.scalar(others.where(Connection.arn == connection.arn, Connection.id < connection.id)):
        abort(403)
    return assume_role(connection.arn, connection.external_id)


def trusts(site, token):
    claims = jwt.decode(token, KEY, algorithms=["HS256"], issuer=ISSUER, audience=AUDIENCE)
    job = f"repo:{site.repository}:ref:{site.ref}", site.repository_id
    return (claims.get("sub"), claims.get("repository_id")) == job


@bp.post("/connections/<int:connection_id>/scan")
@login_required
def scan(connection_id):
    return {"buckets": assume(own_connection(connection_id))}


@bp.post("/sites/<int:site_id>/deploy")
def deploy(site_id):
    site = db.get_or_404(Site, site_id)
    if not trusts(site, bearer()):
        abort(403)
    site.version = request.get_json()["version"]
    db.session.commit()
    return "", 204
