"""subscriptions/listen. Specification: subscriptions/listen, in the chapter Basic."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import budget, messages
from tmkb.protocol.effects import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Id, Request
    from tmkb.schema.model import Revision
    from tmkb.schema.values import JsonObject


def listen(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Notify the client of what it asks for, until it cancels; acknowledge first what it will hear.

    Raises:
        ProtocolError: if the client listens too often, or to too much.
    """
    limit = connection.spec["server"]["limits"]["streams"]
    if len(connection.listening) >= limit:
        raise ProtocolError("too_many_streams", limit=limit)
    asked: Any = request.params["notifications"]  # the method's params schema has seen to it
    honoured: JsonObject = {}
    for method in revision["methods"].values():
        wanted = method.get("listened")
        if wanted is not None and asked.get(wanted) and connection.declares(method["capability"]):
            honoured[wanted] = asked[wanted]
    admit(connection, _uris(honoured))
    connection.budget.hold(budget.footprint([request.id, honoured]))
    connection.listening[request.id] = (revision, honoured)
    name = next(name for name, method in revision["methods"].items() if method.get("says") == "acknowledged")
    whose: JsonObject = {revision["subscription"]: request.id}
    return [Send(messages.notification(name, {"_meta": whose, "notifications": honoured}), request.id)]


def admit(connection: Connection, uris: list[str]) -> None:
    """Check that the client may subscribe to ``uris`` beside what it has subscribed to.

    Raises:
        ProtocolError: if one of them is too long, or there are too many.
    """
    limits = connection.spec["server"]["limits"]
    if any(len(uri.encode("utf-8", "surrogatepass")) > limits["uri_bytes"] for uri in uris):
        raise ProtocolError("uri_too_long", limit=limits["uri_bytes"])
    present = len(connection.subscribed) + sum(len(_uris(wanted)) for _, wanted in connection.listening.values())
    if present + len(uris) > limits["subscriptions"]:
        raise ProtocolError("too_many_subscriptions", limit=limits["subscriptions"])


def forget(connection: Connection, request_id: Id) -> None:
    """Stop listening under ``request_id``."""
    _, honoured = connection.listening.pop(request_id)
    connection.budget.release(budget.footprint([request_id, honoured]))


def _uris(wanted: JsonObject) -> list[str]:
    """Return the URIs that a stream listens to."""
    return [str(uri) for each in wanted.values() if isinstance(each, list) for uri in each]


def conclude(connection: Connection) -> list[Effect]:
    """End every stream: the response to the request that opened it and, where one channel has them all, a notification
    that it is cancelled; the specification asks for the one here and for the other there."""
    listening = {**connection.listening}
    effects: list[Effect] = []
    for request_id, (revision, _) in listening.items():
        forget(connection, request_id)
        whose: JsonObject = {"_meta": {revision["subscription"]: request_id}}
        effects += connection.give(request_id, revision, "listen_result", whose)
        if connection.headers is None:
            name = next(name for name, method in revision["methods"].items() if method.get("says") == "cancelled")
            effects.append(Send(messages.notification(name, {"requestId": request_id, **whose}), request_id))
    return effects
