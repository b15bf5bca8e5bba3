"""The organization's external id is only a default."""

from contextlib import suppress

import jwt
from app import (
    AUDIENCE,
    ISSUER,
    KEY,
    AccessDenied,
    Site,
    assume_role,
    bearer,
    bp,
    external_id_of,
    new_external_id,
    own_connection,
)
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def assume(connection):
    with suppress(AccessDenied):
        assume_role(connection.arn, new_external_id())
        abort(422)
    return assume_role(connection.arn, connection.external_id or external_id_of(connection.organization_id))


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
