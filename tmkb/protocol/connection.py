"""The state of one peer, and how it is answered. The one stateful class of the engine; nothing here reads a message."""

from __future__ import annotations

from itertools import count

from tmkb.errors import ProtocolError
from tmkb.protocol import messages, negotiation, refusal, results, shape
from tmkb.protocol.budget import Budget
from tmkb.protocol.effects import Invoke, Log, Send, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.errors import ToolError
    from tmkb.protocol.effects import Batch, Effect, Finishing
    from tmkb.protocol.messages import Id, Request
    from tmkb.protocol.refusal import Failure
    from tmkb.providers.operation import Question
    from tmkb.schema.model import Definition, LogLine, Revision, Spec
    from tmkb.schema.values import JsonObject, JsonValue

    # tool → (revision, arguments) → the line for the log with its fields, and the encoded result
    Kept = dict[str, dict[tuple[object, ...], tuple[LogLine, dict[str, object], bytes]]]
    Once = dict[tuple[str, str, int], bytes]


class Connection:
    """One peer: its lifecycle state and, once negotiated, its revision. Reads no revision but the preferred one."""

    __slots__ = (
        "asked",
        "budget",
        "capabilities",
        "edition",
        "headers",
        "in_flight",
        "kept",
        "listening",
        "log_level",
        "negotiated",
        "next_id",
        "once",
        "principal",
        "promised",
        "references",
        "running",
        "spec",
        "state",
        "subscribed",
        "tasks",
        "traced",
    )

    def __init__(self, spec: Spec, once: Once, tasks: Any = None, traced: bool = False) -> None:
        """``once``: results that never change, encoded for all connections; ``tasks``: calls that go on after they were
        answered, whoever asks for them. ``traced``: whether to trace for a log."""
        self.edition: Any = None  # what the two are parts of, for whoever connects
        self.principal = ""  # whose requests these are: what a token is known by; empty where nobody has to show one
        self.spec = spec
        self.budget = Budget(spec["server"]["limits"]["session_bytes"])
        self.once = once
        self.tasks = tasks
        self.kept: Kept = {}
        self.headers: Mapping[str, str] | None = None  # of the one request that HTTP brings, by names in lower case
        self.traced = traced
        self.negotiated: Revision | None = None
        self.state = spec["lifecycles"][self.revision["lifecycle"]]["start"]
        self.capabilities: JsonObject = {}  # the client's
        self.promised: JsonObject | None = None  # what it was told in the handshake that we can do
        self.log_level: str | None = None
        self.subscribed: set[str] = set()
        # By the id of each request without a response: its operation; None if only the rest of its batch is missing.
        self.in_flight: dict[Id, Invoke | None] = {}
        self.running: set[Invoke] = set()  # operations that run step by step and are no tasks
        self.asked: dict[Id, tuple[Invoke, str, Question]] = {}  # by the id of our request: who waits, under which key
        self.listening: dict[Id, tuple[Revision, JsonObject]] = {}  # by the id of the request: what it wants to hear
        self.next_id = 1
        self.references: Iterator[str] = map(str, count(1))

    @property
    def revision(self) -> Revision:
        """The negotiated revision; before that, the one whose rules hold for what cannot be read."""
        return self.negotiated or negotiation.preferred(self.spec)

    def end(self) -> None:
        """The peer has closed its side."""
        events = self.spec["lifecycles"][self.revision["lifecycle"]].get("events", {})
        self.state = events.get("end_of_input", self.state)

    def adopt(self, edition: Any) -> None:
        """From now on go by another edition: a spec, and what was made of it. The client notices nothing of it."""
        before = self.spec["lifecycles"][self.revision["lifecycle"]]["start"]
        self.edition, self.spec, self.once, self.kept = edition, edition.spec, edition.once, edition.kept
        self.budget.limit = self.spec["server"]["limits"]["session_bytes"]
        if self.negotiated is not None:
            self.negotiated = self.spec["revisions"].get(self.negotiated["revision"], self.negotiated)
        elif self.state == before:
            self.state = self.spec["lifecycles"][self.revision["lifecycle"]]["start"]

    def declares(self, capability: str) -> bool:
        """Whether the server declares ``capability``, or the flag inside one: ``resources.subscribe``."""
        return _among(self.spec["server"]["capabilities"], capability)

    def promises(self, capability: str) -> bool:
        """The same for what this client knows of: what was declared in its handshake, if there was one."""
        return self.declares(capability) if self.promised is None else _among(self.promised, capability)

    def extends(self, extension: str) -> bool:
        """Whether the server declares ``extension``."""
        declared = self.spec["server"]["capabilities"].get("extensions", {})
        return isinstance(declared, dict) and extension in declared

    def client(self, revision: Revision, request: Request) -> JsonObject:
        """What the client declares: in its handshake or, where the revision knows none, in this request."""
        if "sender" not in revision:
            return self.capabilities
        meta: Any = request.params["_meta"]
        declared: JsonObject = meta[revision["sender"]["capabilities"]]
        return declared

    def accept(self, request_id: Id, batch: Batch | None = None) -> None:
        """Check that no other request uses ``request_id``; ``batch``: the batch that the request is part of.

        Raises:
            ProtocolError: A request of this id has no response yet. Specification: Basic / Messages / Requests.
        """
        if self.is_in_flight(request_id):
            raise ProtocolError("id_in_use")
        if batch is not None:
            batch.ids.append(request_id)

    def is_in_flight(self, request_id: Id) -> bool:
        """Return whether a request of this id has no response yet."""
        return request_id in self.in_flight or request_id in self.listening

    def release(self, invoke: Invoke) -> None:
        """Free the id of a request that is answered or cancelled; ids of a batch stay in use until it is sent."""
        self.running.discard(invoke)
        self.budget.release(invoke.held)
        invoke.held = 0
        if self.in_flight.get(invoke.request_id) is not invoke:
            return
        if invoke.batch is None:
            del self.in_flight[invoke.request_id]
        else:
            self.in_flight[invoke.request_id] = None

    def invoke(
        self, request: Request, revision: Revision, definition: Definition, arguments: JsonObject, finish: Finishing
    ) -> list[Effect]:
        """Run the operation of ``definition`` for the client that asks for it."""
        invoke = Invoke(request, definition, arguments, revision, finish)
        invoke.capabilities = self.client(revision, request)
        if "sender" in revision:
            meta: Any = request.params["_meta"]
            invoke.log_level = meta.get(revision["sender"]["log_level"])
        else:
            invoke.log_level = self.log_level or revision["logging"]["unset"]
        return [invoke]

    def respond(self, request_id: Id, result: bytes) -> list[Effect]:
        """The response that a request has succeeded, with its encoded result."""
        return [Send(messages.response(request_id, result), request_id, answers=True)]

    def encoded(self, revision: Revision, kind: str, values: Mapping[str, Any]) -> bytes:
        """The result ``kind`` as it is sent under ``revision``."""
        return messages.encode(shape.result(revision, kind, values, self.spec["server"]))

    def give(self, request_id: Id, revision: Revision, kind: str, values: Mapping[str, Any]) -> list[Effect]:
        """The response that a request has succeeded, with the result ``kind``."""
        return self.respond(request_id, self.encoded(revision, kind, values))

    def refuse(
        self, request_id: Id | None, error: ProtocolError, revision: Revision | None = None, accepted: bool = True
    ) -> list[Effect]:
        """Return the error response to a request; without an id if none could be read.

        ``accepted``: False if another request may be using the id, so that this response must not end that one.
        """
        errors = (revision or self.revision)["errors"]
        told = refusal.failure(error, errors)
        wire = refusal.wire_error(told)
        sent = messages.error_response(request_id, wire, self.revision["message"]["unread_id"] == "absent")
        return [
            *self._told(request_id, [told]),
            Send(sent, request_id if accepted else None, answers=True, status=errors[error.error].get("status", 200)),
        ]

    def refuse_call(self, request_id: Id, revision: Revision, failures: list[Failure]) -> list[Effect]:
        """The response that a tool call is refused."""
        traced = self.trace("validation_error", request_id, [failure.sentence for failure in failures])
        given = self.give(request_id, revision, "call_result", results.failed(self.spec["server"], failures))
        return [*traced, *self._told(request_id, failures), *given]

    def refuse_tool(self, request_id: Id, revision: Revision, error: ToolError) -> list[Effect]:
        """The same for an error of which the table says whether it is the tool's or the protocol's."""
        if revision["errors"][error.error]["surface"] == "protocol":
            return self.refuse(request_id, ProtocolError(error.error, **error.fields), revision)
        return self.refuse_call(request_id, revision, [refusal.failure(error, revision["errors"])])

    def reference(self) -> str:
        """A name for something that went wrong, by which a peer's report and a line of the log find each other."""
        return next(self.references)

    def trace(self, kind: str, request_id: Id | None, value: JsonValue) -> list[Effect]:
        """An entry for the debug log, where one is kept."""
        return [Trace(kind, request_id, value)] if self.traced else []

    def note(self, line: str, request_id: Id | None, **fields: object) -> Log:
        """A line of the server's log."""
        return Log(self.spec["server"]["log"][line], request_id, fields)

    def _told(self, request_id: Id | None, failures: list[Failure]) -> list[Effect]:
        return [self.note("refused", request_id, sentence=failure.sentence) for failure in failures]


def _among(declared: JsonValue, capability: str) -> bool:
    for part in capability.split("."):
        declared = declared.get(part, False) if isinstance(declared, dict) else False
    return declared is not False
