"""subscriptions/listen. Specification: subscriptions/listen, in the chapter Basic."""

from __future__ import annotations

from tmkb.engine import message
from tmkb.engine.effects import Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def listen(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """From now on tell of what is asked for and can be told, until the client cancels; begin by saying what."""
    asked: Any = request.params["notifications"]  # the method's params schema has seen to it
    honoured: JsonObject = {}
    for method in revision["methods"].values():
        wanted = method.get("listened")
        if wanted is not None and asked.get(wanted) and connection.declares(method["capability"]):
            honoured[wanted] = asked[wanted]
    connection.listening[request.id] = (revision, honoured)
    name = next(name for name, method in revision["methods"].items() if method.get("says") == "acknowledged")
    whose: JsonObject = {revision["subscription"]: request.id}
    return [Send(message.notification(name, {"_meta": whose, "notifications": honoured}))]


def conclude(connection: Connection) -> list[Effect]:
    """End every stream: the responses to the requests that opened them."""
    listening, connection.listening = connection.listening, {}
    return [
        effect
        for request_id, (revision, _) in listening.items()
        for effect in connection.give(
            request_id, revision, "listen_result", {"_meta": {revision["subscription"]: request_id}}
        )
    ]
