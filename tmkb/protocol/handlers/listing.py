"""What all lists share: pages, and encoded results, which are cached because they do not change."""

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
    """Return the response with the page of ``entries`` that the request asks for.

    Args:
        exchange: the request, which may have a cursor.
        key: the field of the result that has the entries.
        kind: the object that the result is.
        entries: makes all entries.
    """
    server, cache = exchange.spec["server"], exchange.snapshot.list_cache
    size = server["limits"].get("page_size")
    start, end, next_cursor = 0, None, None
    if size is not None or "cursor" in exchange.params:
        from tmkb.protocol.handlers import paging

        cursor = exchange.params["cursor"] or "" if "cursor" in exchange.params else None
        start, end, next_cursor = paging.page(exchange.method, len([*entries()]), size, cursor)
    cached = (exchange.method, exchange.revision["revision"], start)
    if cached not in cache:
        rest = {} if next_cursor is None else {"nextCursor": next_cursor}
        values = {**server.get("cache", {}), key: [*entries()][start:end], **rest}
        cache[cached] = outbound.encode_result(exchange, kind, values)
    return outbound.send_encoded(exchange, cache[cached])


def entry(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that entries of all lists share, by their names on the wire."""
    return {**definition, **({"_meta": definition["meta"]} if "meta" in definition else {})}
