"""What every list has alike: pages, and entries that fit the revision. They never change, so each is encoded once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Revision


def answer(
    connection: Connection,
    revision: Revision,
    request: Request,
    key: str,
    kind: str,
    listed: Callable[[], Iterable[Mapping[str, Any]]],
) -> list[Effect]:
    """The page of what ``listed`` makes that the request asks for, under ``key`` of a result ``kind``."""
    size = connection.spec["server"]["limits"].get("page_size")
    start, end, following = 0, None, None
    if size is not None or "cursor" in request.params:
        from tmkb.protocol.handlers import paging

        cursor = request.params["cursor"] or "" if "cursor" in request.params else None
        start, end, following = paging.page(request.method, len([*listed()]), size, cursor)
    place = (request.method, revision["revision"], start)
    if place not in connection.once:
        rest = {} if following is None else {"nextCursor": following}
        result = {**connection.spec["server"].get("cache", {}), key: [*listed()][start:end], **rest}
        connection.once[place] = connection.encoded(revision, kind, result)
    return connection.respond(request.id, connection.once[place])


def identity(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the entries of every list have, by their names on the wire."""
    return {**definition, **({"_meta": definition["meta"]} if "meta" in definition else {})}
