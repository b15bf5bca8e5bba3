"""The state of one peer, and how it is answered. The one stateful class of the engine; nothing here reads a message."""

from __future__ import annotations

from tmkb.engine import negotiation, refusal
from tmkb.engine.effects import Log, Send, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Id
    from tmkb.errors import ProtocolError
    from tmkb.spec.model import Revision, Spec
    from tmkb.values import JsonObject, JsonValue


class Connection:
    """One peer: its lifecycle state and, once negotiated, its revision. Costs nothing to make."""

    __slots__ = ("negotiated", "spec", "state", "traced")

    def __init__(self, spec: Spec, traced: bool = False) -> None:
        """``traced``: whether effects for the debug log are wanted."""
        self.spec = spec
        self.traced = traced
        self.negotiated: Revision | None = None
        self.state = spec["lifecycles"][self.revision["lifecycle"]]["start"]

    @property
    def revision(self) -> Revision:
        """The negotiated revision; before that, the one whose rules hold for what cannot be read."""
        return self.negotiated or negotiation.preferred(self.spec)

    def end(self) -> None:
        """The peer has closed its side."""
        events = self.spec["lifecycles"][self.revision["lifecycle"]].get("events", {})
        self.state = events.get("end_of_input", self.state)

    def respond(self, request_id: Id, result: JsonObject) -> list[Effect]:
        """The response that a request has succeeded."""
        return [Send({"jsonrpc": "2.0", "id": request_id, "result": result})]

    def refuse(self, request_id: Id | None, error: ProtocolError) -> list[Effect]:
        """The response that a request is refused; no id where none could be read."""
        response: JsonObject = {"jsonrpc": "2.0"}
        if request_id is not None or self.revision["message"]["unread_id"] == "null":
            response["id"] = request_id
        wire = refusal.wire_error(error, self.revision["errors"])
        return [*self._told(request_id, [str(wire["message"])]), Send({**response, "error": wire})]

    def refuse_call(self, request_id: Id, sentences: list[str]) -> list[Effect]:
        """The response that a tool call is refused."""
        traced = self.trace("validation_error", request_id, [*sentences])
        return [*traced, *self._told(request_id, sentences), *self.respond(request_id, refusal.call_result(sentences))]

    def trace(self, kind: str, request_id: Id | None, value: JsonValue) -> list[Effect]:
        """An entry for the debug log, where one is kept."""
        return [Trace(kind, request_id, value)] if self.traced else []

    def _told(self, request_id: Id | None, sentences: list[str]) -> list[Effect]:
        line = self.spec["server"]["log"]["refused"]
        return [Log(line, request_id, {"sentence": sentence}) for sentence in sentences]
