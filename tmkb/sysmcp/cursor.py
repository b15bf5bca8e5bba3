"""Cursors: base64url of a JSON array that starts with the digest of the query.

They are neither signed nor secret, because a client could reach the same results with other arguments.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import NoReturn

from tmkb.errors import ToolError
from tmkb.schema.values import JsonValue


def digest(query: str) -> str:
    """Return a short digest, which binds a cursor to ``query``."""
    return hashlib.sha256(query.encode()).hexdigest()[:16]


def encode(state: str) -> str:
    """Encode a JSON text as a cursor."""
    return base64.urlsafe_b64encode(state.encode()).decode().rstrip("=")


def decode(cursor: str) -> JsonValue:
    """Return the state in ``cursor``; None if the text is not a cursor."""
    try:
        state: JsonValue = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (ValueError, RecursionError):
        return None
    return state


def reject(cursor: str | None) -> NoReturn:
    """Raise the ToolError for a cursor of another query, or an invalid one."""
    raise ToolError("bad_cursor", path="arguments.cursor", received=cursor)
