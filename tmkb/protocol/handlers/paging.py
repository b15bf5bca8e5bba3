"""Split lists into pages. A cursor, which is opaque to clients, contains the list, a position and a checksum.

Specification: Server Features / Utilities / Pagination.
"""

from __future__ import annotations

import binascii

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.values import JsonValue


def page(scope: str, count: int, size: int | None, cursor: JsonValue) -> tuple[int, int, str | None]:
    """Return the start and end of a page in a list of ``count`` entries, and the cursor of the next page.

    Raises:
        ProtocolError: if ``cursor``, any value of a peer, is not a cursor of this list.
    """
    size = size or max(count, 1)
    start = 0 if cursor is None else _start(scope, cursor)
    if start % size or start >= max(count, 1):
        raise ProtocolError("unknown_cursor")
    end = min(start + size, count)
    return start, end, _cursor(scope, end) if end < count else None


def _cursor(scope: str, start: int) -> str:
    text = f"{scope} {start}".encode()
    return binascii.b2a_base64(text + b" %08x" % binascii.crc32(text), newline=False).decode()


def _start(scope: str, cursor: JsonValue) -> int:
    try:
        start = int(binascii.a2b_base64(str(cursor), strict_mode=True).split()[1])
    except (ValueError, IndexError) as error:
        raise ProtocolError("unknown_cursor") from error
    if start == 0 or _cursor(scope, start) != cursor:
        raise ProtocolError("unknown_cursor")
    return start
