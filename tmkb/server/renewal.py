"""Another spec for a connection that has begun under one: whether it can go on with it, and what its client is told."""

from __future__ import annotations

from tmkb.protocol import dispatch, messages
from tmkb.protocol.connection import Connection
from tmkb.protocol.effects import Send
from tmkb.protocol.messages import Request
from tmkb.providers.operation import Notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tmkb.schema.model import Spec
    from tmkb.schema.values import JsonObject


def fits(connection: Connection, spec: Spec) -> bool:
    """Whether ``spec`` still has the revision that the connection negotiated, and the state that it is in."""
    if connection.negotiated is None:
        return True
    revision = spec["revisions"].get(connection.negotiated["revision"])
    return revision is not None and connection.state in spec["lifecycles"][revision["lifecycle"]]["states"]


def news(connection: Connection, spec: Spec) -> list[Notify]:
    """What to say about lists that look different under ``spec``, each once; who hears it is not asked here."""
    spoken = {revision["revision"] for revision, _ in connection.listening.values()}
    if connection.negotiated is not None:
        spoken.add(connection.negotiated["revision"])
    methods = {
        name: None
        for revision in sorted(spoken & {*spec["revisions"]})
        for name in _changed(connection.spec, spec, revision)
    }
    return [Notify(name) for name in methods]


def _changed(before: Spec, after: Spec, revision: str) -> Iterator[str]:
    """The notifications of ``revision`` whose lists are not answered as they were."""
    for name, method in after["revisions"][revision]["methods"].items():
        if any(
            [*_pages(before, revision, listed)] != [*_pages(after, revision, listed)]
            for listed in method.get("lists", [])
        ):
            yield name


def _pages(spec: Spec, revision: str, name: str) -> Iterator[Any]:
    """Every page of a list, as its method answers, without what is said of the answer itself."""
    spoken = spec["revisions"][revision]
    connection = Connection(spec, {})
    cursor: JsonObject = {}
    while name in spoken["methods"]:
        handler = dispatch.handler(spoken["methods"][name]["handler"])
        effects = handler(connection, spoken, Request(0, name, cursor))
        result: Any = next(messages.decode(each.message) for each in effects if isinstance(each, Send))
        yield {key: value for key, value in result["result"].items() if key != "_meta"}
        if "nextCursor" not in result["result"]:
            return
        cursor = {"cursor": result["result"]["nextCursor"]}
