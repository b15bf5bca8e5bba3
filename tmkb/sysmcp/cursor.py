"""What a page hands over so that the next begins behind it: base64url of JSON, with a mark of the query that it is of.

It is neither signed nor secret, because it says nothing that arguments could not.
"""

from __future__ import annotations

import base64
import hashlib
import json

from tmkb.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from tmkb.schema.values import JsonValue


def mark(query: str) -> str:
    """What tells a query, as a text, from others."""
    return hashlib.sha256(query.encode()).hexdigest()[:16]


def packed(state: str) -> str:
    """The cursor of a state, which is JSON."""
    return base64.urlsafe_b64encode(state.encode()).decode().rstrip("=")


def unpacked(cursor: str) -> JsonValue:
    """The state; None where the text was never a cursor."""
    try:
        state: JsonValue = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (ValueError, RecursionError):
        return None
    return state


def refuse(cursor: str | None) -> NoReturn:
    """Raises ToolError: it is of another query, or of no query."""
    raise ToolError("bad_cursor", path="arguments.cursor", received=cursor)
