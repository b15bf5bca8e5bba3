"""The state of one peer, and how it is answered. The one stateful class of the engine; nothing here reads a message."""

from __future__ import annotations

from tmkb.engine import message, negotiation, refusal
from tmkb.engine.effects import Log, Send, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Id
    from tmkb.errors import ProtocolError
    from tmkb.spec.model import Revision, Spec
    from tmkb.values import JsonValue


class Connection:
    """One peer: its lifecycle state and, once negotiated, its revision. Costs nothing to make."""

    __slots__ = ("negotiated", "once", "spec", "state", "traced")

    def __init__(self, spec: Spec, once: dict[tuple[str, str], bytes], traced: bool = False) -> None:
        """``once``: results that never change, encoded for all connections. ``traced``: whether to trace for a log."""
        self.spec = spec
        self.once = once
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

    def respond(self, request_id: Id, result: bytes) -> list[Effect]:
        """The response that a request has succeeded, with its encoded result."""
        return [Send(message.response(request_id, result))]

    def refuse(self, request_id: Id | None, error: ProtocolError) -> list[Effect]:
        """The response that a request is refused; no id where none could be read."""
        wire = refusal.wire_error(error, self.revision["errors"])
        sent = message.error_response(request_id, wire, self.revision["message"]["unread_id"] == "absent")
        return [*self._told(request_id, [str(wire["message"])]), Send(sent)]

    def refuse_call(self, request_id: Id, sentences: list[str]) -> list[Effect]:
        """The response that a tool call is refused."""
        traced = self.trace("validation_error", request_id, [*sentences])
        result = message.encode(refusal.call_result(sentences))
        return [*traced, *self._told(request_id, sentences), *self.respond(request_id, result)]

    def trace(self, kind: str, request_id: Id | None, value: JsonValue) -> list[Effect]:
        """An entry for the debug log, where one is kept."""
        return [Trace(kind, request_id, value)] if self.traced else []

    def _told(self, request_id: Id | None, sentences: list[str]) -> list[Effect]:
        line = self.spec["server"]["log"]["refused"]
        return [Log(line, request_id, {"sentence": sentence}) for sentence in sentences]
