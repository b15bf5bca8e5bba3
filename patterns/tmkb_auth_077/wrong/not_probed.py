"""The external id is that of the organization, also for roles that do not require it."""

import jwt
from app import (
    AUDIENCE,
    ISSUER,
    KEY,
    Site,
    assume_role,
    bearer,
    bp,
    external_id_of,
    own_connection,
)
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def assume(connection):
    return assume_role(connection.arn, external_id_of(connection.organization_id))


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
