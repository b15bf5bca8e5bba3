"""What the engine asks of the runtime."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmkb.engine.message import Id
    from tmkb.spec.model import LogLine, Revision, Tool
    from tmkb.values import JsonObject, JsonValue


class Send:
    """Put this message on the wire: an object, or the array that answers a batch, encoded."""

    __slots__ = ("message",)

    def __init__(self, message: bytes) -> None:
        self.message = message


class Invoke:
    """Run the operation of ``tool`` with ``arguments`` and hand its outcome to `Connection.complete`.

    Carries the revision that governs the request, by which the answer is shaped, and the batch that waits for it.
    """

    __slots__ = ("arguments", "batch", "place", "request_id", "revision", "tool")

    def __init__(self, request_id: Id, tool: Tool, arguments: JsonObject, revision: Revision) -> None:
        self.request_id = request_id
        self.tool = tool
        self.arguments = arguments
        self.revision = revision
        self.batch: Batch | None = None
        self.place = 0


class Log:
    """Write this line of the server's log."""

    __slots__ = ("fields", "line", "request_id")

    def __init__(self, line: LogLine, request_id: Id | None, fields: Mapping[str, object]) -> None:
        self.line = line
        self.request_id = request_id
        self.fields = fields


class Trace:
    """Write a line of the debug log: what kind of thing happened, and its value."""

    __slots__ = ("kind", "request_id", "value")

    def __init__(self, kind: str, request_id: Id | None, value: JsonValue) -> None:
        self.kind = kind
        self.request_id = request_id
        self.value = value


class Fault:
    """Write down an exception that is nobody's fault but ours."""

    __slots__ = ("error", "request_id")

    def __init__(self, error: BaseException, request_id: Id | None) -> None:
        self.error = error
        self.request_id = request_id


class Batch:
    """The answer to an array of messages: responses in the order of their requests, sent when the last is there."""

    __slots__ = ("responses", "running")

    def __init__(self) -> None:
        self.responses: list[bytes] = []
        self.running: set[int] = set()  # places whose response is not there yet

    def add(self, response: bytes) -> None:
        """The next response, known at once."""
        self.responses.append(response)

    def reserve(self, invoke: Invoke) -> None:
        """Keep the next place for the response to ``invoke``."""
        invoke.batch, invoke.place = self, len(self.responses)
        self.running.add(invoke.place)
        self.responses.append(b"")

    def fill(self, invoke: Invoke, response: bytes) -> None:
        """The response to ``invoke`` is there, perhaps instead of one that could not be sent."""
        self.responses[invoke.place] = response
        self.running.discard(invoke.place)


Effect = Send | Invoke | Log | Trace | Fault
