"""Send pages of lists, and cache the encoded results."""

from __future__ import annotations

from tmkb.protocol import outbound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange


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
    size = server["limits"].get("page_size")
    start, end, next_cursor = 0, None, None
    if size is not None or "cursor" in exchange.params:
        from tmkb.protocol.handlers import paging

        cursor = exchange.params["cursor"] or "" if "cursor" in exchange.params else None
        start, end, next_cursor = paging.page(exchange.method, len([*entries()]), size, cursor)
    page_key = (exchange.method, exchange.revision["revision"], start)
    if page_key not in cache:
        rest = {} if next_cursor is None else {"nextCursor": next_cursor}
        values = {**server.get("cache", {}), key: [*entries()][start:end], **rest}
        cache[page_key] = outbound.encode_result(exchange, kind, values)
    return outbound.send_encoded(exchange, cache[page_key])


def entry(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a list entry, by their names on the wire."""
    return {**definition, **({"_meta": definition["meta"]} if "meta" in definition else {})}
