"""Effects: what the protocol engine tells the runtime to do. Immutable values; none carries a function."""

from __future__ import annotations

from tmkb.schema.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmkb.errors import ToolError
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.messages import Id
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Notify, Question
    from tmkb.schema.model import LogLine
    from tmkb.schema.values import JsonObject, JsonValue


@dataclass(frozen=True)
class Send:
    """Send an encoded message to the peer of ``connection``.

    ``about``: the request that the message belongs to, if any. ``answers``: whether it is the response to that request.
    ``status``: the status of an HTTP response that consists of it.
    """

    connection: Connection
    message: bytes
    about: Id | None = None
    answers: bool = False
    status: int | None = None


@dataclass(frozen=True)
class ReleaseStream:
    """Close the stream that will carry the response to ``about``; the client resumes it later."""

    connection: Connection
    about: Id | None


@dataclass(frozen=True)
class Drop:
    """Stop waiting for a response to ``about``: there will be none."""

    connection: Connection
    about: Id | None


@dataclass(frozen=True)
class Broadcast:
    """Send a notification to every client that subscribes to it."""

    notification: Notify


@dataclass(frozen=True)
class Invoke:
    """Run the operation of a request. `requests.complete` makes the response of its outcome."""

    exchange: Exchange


@dataclass(frozen=True)
class Cancel:
    """Stop the operation of a request, whose outcome is no longer needed."""

    exchange: Exchange


@dataclass(frozen=True)
class Resume:
    """Deliver the answer to ``question``, which an operation asked under ``key``, or the reason why there is none."""

    exchange: Exchange
    key: str
    question: Question
    answer: JsonObject | ToolError


@dataclass(frozen=True)
class Log:
    """Write a line of the server's log."""

    line: LogLine
    request_id: Id | None
    fields: Mapping[str, object]


@dataclass(frozen=True)
class Trace:
    """Write a line of the debug log: a kind of event, and its value."""

    kind: str
    request_id: Id | None
    value: JsonValue


@dataclass(frozen=True)
class LogException:
    """Log an unexpected exception. ``ref`` is the reference that the error response to the peer contains."""

    error: BaseException
    request_id: Id | None
    ref: str


@dataclass(frozen=True)
class RecordUsage:
    """Count a call that ran no operation: its arguments were refused, or its result was cached."""

    tool: str
    failed: bool
    principal: str


Effect = Send | ReleaseStream | Drop | Broadcast | Invoke | Cancel | Resume | Log | Trace | LogException | RecordUsage
