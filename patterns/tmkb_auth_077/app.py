"""Scans of customers' cloud accounts, and deployments from CI. A version of the code decides whom to trust.

The cloud is a table of roles that trust this product. The external id of a role is a condition of its trust policy, in
which * is a wildcard. The CI provider signs tokens for the jobs of all its customers, a real one with a private key.
"""

import secrets
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

import jwt
from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

ISSUER, AUDIENCE = "https://ci.example", "https://deploy.example"
KEY = "0123456789abcdef0123456789abcdef"


class Role(db.Model):
    arn = mapped_column(db.String, primary_key=True)
    external_id = mapped_column(db.String)  # no condition if NULL
    buckets = mapped_column(db.JSON, nullable=False)


class ExternalId(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    value = mapped_column(db.String, nullable=False, unique=True)


class Connection(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    arn = mapped_column(db.String, nullable=False)
    external_id = mapped_column(db.String)  # as sent by the client
    organization_id = mapped_column(db.Integer, nullable=False)


class Site(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    repository = mapped_column(db.String, nullable=False)
    repository_id = mapped_column(db.String, nullable=False)
    ref = mapped_column(db.String, nullable=False)
    version = mapped_column(db.Integer, nullable=False, default=1)


class AccessDenied(Exception):
    """The trust policy of the role does not allow it, or there is no such role."""


bp = Blueprint("trust", __name__)
bp.register_error_handler(AccessDenied, lambda _error: ("", 403))
bp.register_error_handler(jwt.InvalidTokenError, lambda _error: ("", 401))


def assume_role(arn, external_id=None):
    """Return what the role can read, as this product."""
    role = db.session.get(Role, arn)
    if role is None or (role.external_id and not fnmatchcase(external_id or "", role.external_id)):
        raise AccessDenied
    return role.buckets


def new_external_id():
    return f"tracker-{secrets.token_hex(16)}"


def external_id_of(organization_id):
    """Return the external id that this product has generated for the organization."""
    stored = db.session.get(ExternalId, organization_id)
    if stored is None:
        stored = ExternalId(organization_id=organization_id, value=new_external_id())
        db.session.add(stored)
        db.session.commit()
    return stored.value


def bearer():
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


@bp.before_request
def require_organization():
    if current_user.is_authenticated and current_user.organization_id is None:
        abort(403)


@bp.get("/external-id")
@login_required
def show_external_id():
    return {"external_id": external_id_of(current_user.organization_id)}


@bp.post("/connections")
@login_required
def connect():
    if current_user.role != "admin":
        abort(403)
    body = request.get_json()
    connection = Connection(
        arn=body["arn"], external_id=body.get("external_id"), organization_id=current_user.organization_id
    )
    db.session.add(connection)
    db.session.commit()
    return {"id": connection.id}, 201


def own_connection(id):
    own = db.select(Connection).filter_by(organization_id=current_user.organization_id)
    return db.first_or_404(own.filter_by(id=id))


def event_role(arn, buckets, external_id=None):
    db.session.merge(Role(arn=arn, external_id=external_id, buckets=buckets))


def event_site(id, repository, repository_id, ref):
    db.session.add(Site(id=id, repository=repository, repository_id=repository_id, ref=ref))


def event_job(repository, repository_id, job, key=KEY, **others):
    """Return the token of a job of the CI provider."""
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": f"repo:{repository}:{job}",
        "repository": repository,
        "repository_id": repository_id,
        "exp": datetime.now(UTC) + timedelta(minutes=5),
        **others,
    }
    return {"token": jwt.encode(claims, key, algorithm="HS256")}


def state_sites():
    return [[site.id, site.version] for site in db.session.scalars(db.select(Site).order_by(Site.id))]
