"""An authorization server, and files of users.

A version of the code is an MCP server with the tool `read_file`, and the API of the files that the tool calls.
`POST /oauth/token` stands for an authorization code flow with a resource indicator (RFC 8707): the signed-in user lets
an app use the resource, which can belong to anyone. `exchange` stands for a token exchange (RFC 8693) for which the MCP
server presents credentials of its own.
"""

import time

import jwt
from flask import Blueprint, abort, current_app, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

KEY = "the key with which the authorization server signs"
ISSUER = "https://login.example"
SERVICE = "mcp-server"


class File(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    content = mapped_column(db.String, nullable=False)
    owner_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("files", __name__)


def issued(subject, scope, **audience):
    now = time.time()
    claims = {"iss": ISSUER, "sub": subject, "scope": scope, "iat": now, "exp": now + 3600, **audience}
    return jwt.encode(claims, KEY, algorithm="HS256")


@bp.post("/oauth/token")
@login_required
def token():
    body = request.get_json()
    audience = {"aud": body["resource"]} if "resource" in body else {}
    return {"token": issued(str(current_user.id), body["scope"], **audience)}, 201


def exchange(subject_token, audience, scope):
    """Return a token for ``audience`` and the user of ``subject_token``, with a scope that the user has granted."""
    options = {"verify_aud": False}
    claims = jwt.decode(subject_token, KEY, algorithms=["HS256"], issuer=ISSUER, options=options)
    if scope not in claims["scope"].split():
        abort(403)
    return issued(claims["sub"], scope, aud=audience)


def presented():
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def file_of(claims, scope, file_id):
    """Return the file if it belongs to the user of the token. The MCP server itself reaches all files."""
    if scope not in claims["scope"].split():
        abort(403)
    files = db.select(File).filter_by(id=file_id)
    if claims["sub"] != SERVICE:
        files = files.filter_by(owner_id=int(claims["sub"]))
    return db.first_or_404(files)


@bp.errorhandler(jwt.InvalidTokenError)
def invalid_token(_error):
    return "", 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'}


def fetch(path, token):
    """Return the response of the files' API to a request with ``token``."""
    response = current_app.test_client().get(path, headers={"Authorization": f"Bearer {token}"})
    return response.get_data(), response.status_code, {"Content-Type": response.content_type}


def event_add_file(content, owner_id):
    file = File(content=content, owner_id=owner_id)
    db.session.add(file)
    db.session.flush()
    return file.id


def event_forge(subject, audience):
    """Return a token that names the audience and has no signature."""
    claims = {"iss": ISSUER, "sub": subject, "aud": audience, "scope": "files:read", "exp": time.time() + 3600}
    return jwt.encode(claims, None, algorithm="none")


def event_endless(subject, audience, scope):
    """Return a signed token that never expires."""
    claims = {"iss": ISSUER, "sub": subject, "aud": audience, "scope": scope}
    return jwt.encode(claims, KEY, algorithm="HS256")


def state_files():
    return [[file.id, file.content] for file in db.session.scalars(db.select(File).order_by(File.id))]
