"""subscriptions/listen. Specification: subscriptions/listen, in the chapter Basic."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import budget, messages, negotiation, outbound
from tmkb.protocol.effects import Send
from tmkb.protocol.messages import Notification
from tmkb.protocol.requests import Exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Id
    from tmkb.schema.values import JsonObject, JsonValue


class _Listen:
    """Open a stream of notifications, and acknowledge its subscriptions.

    Raises ProtocolError if the client has too many streams or subscriptions.
    """

    def begin(self, exchange: Exchange) -> list[Effect]:
        connection, revision = exchange.connection, exchange.revision
        limit = exchange.spec["server"]["limits"]["streams"]
        if len(connection.listening) >= limit:
            raise ProtocolError("too_many_streams", limit=limit)
        requested: Any = exchange.params["notifications"]  # valid by the schema of the method
        declared = exchange.spec["server"]["capabilities"]
        subscribed: JsonObject = {}
        for method in revision["methods"].values():
            key = method.get("listened")
            if key is not None and requested.get(key) and negotiation.declares(declared, method["capability"]):
                subscribed[key] = _permitted(connection, requested[key])
        admit(exchange, _uris(subscribed))
        connection.budget.reserve(budget.footprint([exchange.id, subscribed]))
        connection.listening[exchange.id] = (revision, subscribed)
        name = outbound.method_of(revision, "acknowledged")
        params: JsonObject = {"_meta": {revision["subscription"]: exchange.id}, "notifications": subscribed}
        return [Send(connection, messages.notification(name, params), exchange.id)]


listen = _Listen()


def admit(exchange: Exchange, uris: list[str]) -> None:
    """Check the limits on subscriptions to ``uris``.

    Raises:
        ProtocolError: if a URI is too long, or the client has too many subscriptions.
    """
    connection, limits = exchange.connection, exchange.spec["server"]["limits"]
    if any(len(uri.encode("utf-8", "surrogatepass")) > limits["uri_bytes"] for uri in uris):
        raise ProtocolError("uri_too_long", limit=limits["uri_bytes"])
    present = len(connection.subscribed) + sum(len(_uris(wanted)) for _, wanted in connection.listening.values())
    if present + len(uris) > limits["subscriptions"]:
        raise ProtocolError("too_many_subscriptions", limit=limits["subscriptions"])


def remove(connection: Connection, request_id: Id) -> None:
    """Remove the stream of the request ``request_id``."""
    _, subscribed = connection.listening.pop(request_id)
    connection.budget.release(budget.footprint([request_id, subscribed]))


def end(connection: Connection) -> list[Effect]:
    """End every stream with the response to its request.

    If all streams share one channel, the specification also requires a notification that the stream is cancelled.
    """
    effects: list[Effect] = []
    for request_id, (revision, _) in [*connection.listening.items()]:
        remove(connection, request_id)
        exchange = Exchange(connection, revision, Notification("", {}), request_id)
        meta: JsonObject = {"_meta": {revision["subscription"]: request_id}}
        effects += outbound.send_result(exchange, "listen_result", meta)
        if connection.headers is None:
            name = outbound.method_of(revision, "cancelled")
            message = messages.notification(name, {"requestId": request_id, **meta})
            effects.append(Send(connection, message, request_id))
    return effects


def _permitted(connection: Connection, wanted: JsonValue) -> JsonValue:
    """Return ``wanted`` without the URIs of resources that the caller may not use."""
    if not isinstance(wanted, list):
        return wanted
    return [uri for uri in wanted if connection.permits("resources", str(uri))]


def _uris(subscribed: JsonObject) -> list[str]:
    return [str(uri) for each in subscribed.values() if isinstance(each, list) for uri in each]
