"""What every list has alike: pages, and entries that fit the revision. They never change, so each is encoded once."""

from __future__ import annotations

from tmkb.engine import message, paging, shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def answer(
    connection: Connection,
    revision: Revision,
    request: Request,
    key: str,
    kind: str,
    listed: Sequence[Mapping[str, Any]],
) -> list[Effect]:
    """The page of ``listed`` that the request asks for, as objects ``kind`` under ``key``."""
    size = connection.spec["server"]["limits"].get("page_size")
    if "cursor" in request.params:
        start, end, following = paging.page(request.method, len(listed), size, request.params["cursor"] or "")
    else:
        start, end, following = paging.page(request.method, len(listed), size, None)
    place = (request.method, revision["revision"], start)
    if place not in connection.once:
        result: JsonObject = {key: [shape.fit(revision, kind, entry) for entry in listed[start:end]]}
        if following is not None:
            result["nextCursor"] = following
        connection.once[place] = message.encode(result)
    return connection.respond(request.id, connection.once[place])


def identity(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the entries of every list have, by their names on the wire."""
    return {**definition, **({"_meta": definition["meta"]} if "meta" in definition else {})}
