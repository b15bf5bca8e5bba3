"""The customer chooses the external id, and jobs are trusted by the beginning of their subject."""

import jwt
from app import ISSUER, KEY, Site, assume_role, bearer, bp, own_connection
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
def assume(connection):
    return assume_role(connection.arn, connection.external_id)


def trusts(site, token):
    claims = jwt.decode(token, KEY, algorithms=["HS256"], issuer=ISSUER, options={"verify_aud": False})
    return claims["sub"].startswith(f"repo:{site.repository}")


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


# endregion
