"""Send pages of lists, and cache the encoded results.

A cursor, which is opaque to clients, contains the list, a position and a checksum. Specification: Server Features /
Utilities / Pagination.
"""

from __future__ import annotations

import binascii

from tmkb.errors import ProtocolError
from tmkb.protocol import outbound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.schema.values import JsonValue

_MAX_PAGES = 1000  # in the cache; callers have different permissions


def send_page(
    exchange: Exchange, key: str, kind: str, entries: Callable[[], Iterable[Mapping[str, Any]]]
) -> list[Effect]:
    """Return the response with the requested page of ``entries``.

    Args:
        exchange: the request, which may have a cursor.
        key: the field of the result for the entries.
        kind: the kind of the result in the revision's ``objects``.
        entries: returns all entries.
    """
    server, cache = exchange.spec["server"], exchange.snapshot.list_cache
    permissions = exchange.connection.caller.permissions
    size = server["limits"].get("page_size")
    start, end, next_cursor = 0, None, None
    if size is not None or "cursor" in exchange.params:
        cursor = exchange.params["cursor"] or "" if "cursor" in exchange.params else None
        start, end, next_cursor = page(exchange.method, len([*entries()]), size, cursor)
    page_key = (exchange.method, exchange.revision["revision"], start, permissions)
    encoded = cache.get(page_key)
    if encoded is None:
        rest = {} if next_cursor is None else {"nextCursor": next_cursor}
        values = {**cache_hints(exchange), key: [*entries()][start:end], **rest}
        encoded = outbound.encode_result(exchange, kind, values)
        if len(cache) < _MAX_PAGES:
            cache[page_key] = encoded
    return outbound.send_encoded(exchange, encoded)


def permitted(exchange: Exchange, kind: str) -> list[Any]:
    """Return the tools or prompts that the caller may use."""
    definitions: Any = exchange.spec[kind].values()  # type: ignore[literal-required]
    return [each for each in definitions if exchange.connection.permits(kind, each["name"])]


def cache_hints(exchange: Exchange, definition: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return how long clients may cache a result. What depends on permissions is not shared, and has no hints."""
    if exchange.connection.caller.permissions is not None:
        return {}
    hints: Mapping[str, Any] = (definition or {}).get("cache", exchange.spec["server"].get("cache", {}))
    return hints


def entry(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a list entry, by their names on the wire."""
    return {**definition, **({"_meta": definition["meta"]} if "meta" in definition else {})}


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
