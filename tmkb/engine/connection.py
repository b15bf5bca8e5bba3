"""The state of one peer, and how it is answered. The one stateful class of the engine; nothing here reads a message."""

from __future__ import annotations

from tmkb.engine import message, negotiation, refusal
from tmkb.engine.effects import Log, Send, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.effects import Effect, Invoke
    from tmkb.engine.message import Id
    from tmkb.errors import ProtocolError
    from tmkb.spec.model import Method, Revision, Spec
    from tmkb.values import JsonObject, JsonValue

    Once = dict[tuple[str, str, int], bytes]


class Connection:
    """One peer: its lifecycle state and, once negotiated, its revision. Costs nothing to make."""

    __slots__ = (
        "asked",
        "capabilities",
        "log_level",
        "negotiated",
        "next_id",
        "once",
        "running",
        "spec",
        "state",
        "subscribed",
        "traced",
    )

    def __init__(self, spec: Spec, once: Once, traced: bool = False) -> None:
        """``once``: results that never change, encoded for all connections. ``traced``: whether to trace for a log."""
        self.spec = spec
        self.once = once
        self.traced = traced
        self.negotiated: Revision | None = None
        self.state = spec["lifecycles"][self.revision["lifecycle"]]["start"]
        self.capabilities: JsonObject = {}  # the client's
        self.log_level: str | None = None
        self.subscribed: set[str] = set()
        self.running: dict[Id, Invoke] = {}  # by the id of the request
        self.asked: dict[
            Id, tuple[Invoke, Method, JsonObject]
        ] = {}  # by the id of our request: who waits, and for what
        self.next_id = 1

    @property
    def revision(self) -> Revision:
        """The negotiated revision; before that, the one whose rules hold for what cannot be read."""
        return self.negotiated or negotiation.preferred(self.spec)

    def end(self) -> None:
        """The peer has closed its side."""
        events = self.spec["lifecycles"][self.revision["lifecycle"]].get("events", {})
        self.state = events.get("end_of_input", self.state)

    def declares(self, capability: str) -> bool:
        """Whether the server declares ``capability``, or the flag inside one: ``resources.subscribe``."""
        declared: JsonValue = self.spec["server"]["capabilities"]
        for part in capability.split("."):
            declared = declared.get(part, False) if isinstance(declared, dict) else False
        return declared is not False

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

    def note(self, line: str, request_id: Id | None, **fields: object) -> Log:
        """A line of the server's log."""
        return Log(self.spec["server"]["log"][line], request_id, fields)

    def _told(self, request_id: Id | None, sentences: list[str]) -> list[Effect]:
        return [self.note("refused", request_id, sentence=sentence) for sentence in sentences]
