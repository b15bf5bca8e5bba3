import hashlib
import secrets

from sqlalchemy import select

from worklane.clock import now
from worklane.extensions import db
from worklane.models import ApiKey

SCOPES = ("documents:read", "documents:write", "tasks:read", "tasks:write")


def generate():
    """A new key and its hash."""
    key = "wl_" + secrets.token_urlsafe(24)
    return key, _hash(key)


def find(key):
    """The row of a key that is not revoked; None if there is none."""
    row = db.session.scalar(select(ApiKey).filter_by(key_hash=_hash(key), revoked_at=None))
    if row is not None:
        row.last_used_at = now()
    return row


def _hash(key):
    return hashlib.sha256(key.encode()).hexdigest()
