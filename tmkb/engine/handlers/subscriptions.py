"""subscriptions/listen. Specification: subscriptions/listen, in the chapter Basic."""

from __future__ import annotations

from tmkb.engine import message
from tmkb.engine.effects import Send
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def listen(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """From now on tell of what is asked for and can be told, until the client cancels; begin by saying what.

    Raises ProtocolError where the client listens too often.
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
    connection.listening[request.id] = (revision, honoured)
    name = next(name for name, method in revision["methods"].items() if method.get("says") == "acknowledged")
    whose: JsonObject = {revision["subscription"]: request.id}
    return [Send(message.notification(name, {"_meta": whose, "notifications": honoured}), request.id)]


def conclude(connection: Connection) -> list[Effect]:
    """End every stream: the response to the request that opened it and, where one channel has them all, a notification
    that it is cancelled; the specification asks for the one here and for the other there."""
    listening, connection.listening = connection.listening, {}
    effects: list[Effect] = []
    for request_id, (revision, _) in listening.items():
        whose: JsonObject = {"_meta": {revision["subscription"]: request_id}}
        effects += connection.give(request_id, revision, "listen_result", whose)
        if connection.headers is None:
            name = next(name for name, method in revision["methods"].items() if method.get("says") == "cancelled")
            effects.append(Send(message.notification(name, {"requestId": request_id, **whose}), request_id))
    return effects
