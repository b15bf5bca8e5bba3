"""Effects: immutable values that the engine returns and the runtime carries out. No effect contains a function."""

from __future__ import annotations

from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmkb.errors import ProtocolError, ToolError
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.messages import Id
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Notify, Question
    from tmkb.schema.model import LogLine
    from tmkb.schema.values import JsonObject, JsonValue


@record
class Send:
    """Send an encoded message to the peer of ``connection``.

    ``about``: the request that the message belongs to, if any. ``is_response``: whether it is the response to that
    request. ``status``: the status of an HTTP response that consists of it. ``error``: what it is the response to.
    """

    connection: Connection
    message: bytes
    about: Id | None = None
    is_response: bool = False
    status: int | None = None
    error: ProtocolError | None = None


@record
class ReleaseStream:
    """Close the stream of the response to ``about``. The client resumes it later."""

    connection: Connection
    about: Id | None


@record
class Drop:
    """Stop waiting for the response to ``about``, which will not come."""

    connection: Connection
    about: Id | None


@record
class Disconnect:
    """Close the transport connection that waits for the response to ``about``. Only mock servers do this."""

    connection: Connection
    about: Id | None


Sent = Send | ReleaseStream | Drop | Disconnect  # what a transport carries out


@record
class Broadcast:
    """Send a notification to every subscribed client."""

    notification: Notify


@record
class Invoke:
    """Run the operation of a request. `requests.complete` builds the response from its outcome."""

    exchange: Exchange


@record
class Cancel:
    """Stop the operation of a request, whose outcome is no longer needed."""

    exchange: Exchange


@record
class Resume:
    """Resume an operation with the answer to its ``question``, or with an error to raise in it."""

    exchange: Exchange
    key: str
    question: Question
    answer: JsonObject | ToolError


@record
class Log:
    """Write a line of the server's log."""

    line: LogLine
    request_id: Id | None
    fields: Mapping[str, object]


@record
class Trace:
    """Write a line of the debug log: a kind of event, and its value."""

    kind: str
    request_id: Id | None
    value: JsonValue


@record
class LogException:
    """Log an unexpected exception. ``ref``: the reference in the error response."""

    error: BaseException
    request_id: Id | None
    ref: str


@record
class RecordUsage:
    """Count a call without an operation: its arguments were invalid, or its result was cached."""

    tool: str
    failed: bool
    principal: str


@record
class Ended:
    """Tell the observer that a request has its response, or will not get one. Only for observed connections.

    ``exchange``: None if the message has no method or revision. ``error``: the id of its error; "" for none.
    """

    exchange: Exchange | None
    error: str


Effect = (
    Send
    | ReleaseStream
    | Drop
    | Broadcast
    | Invoke
    | Cancel
    | Resume
    | Log
    | Trace
    | LogException
    | RecordUsage
    | Ended
)
