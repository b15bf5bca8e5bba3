"""Types for operations: the result that they return, and the steps that they yield.

An operation is a function ``(**arguments) → Result | JSON value``, or a generator function that yields steps and
returns such a value. Steps are `Progress`, `Log`, `Notify`, `Ask`, `RequireCapability`, `ReleaseStream`, `Detach` and
`Pause`. The server handles other messages at each yield, and closes the generator there if the request is cancelled.
"""

from __future__ import annotations

from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from tmkb.schema.values import JsonObject, JsonValue


@record
class Result:
    """Content blocks as the protocol defines them, and facts for the tool's log line.

    ``structured`` becomes ``structuredContent``, ``meta`` becomes ``_meta``.
    """

    content: list[JsonObject]
    is_error: bool = False
    facts: JsonObject | None = None
    structured: JsonObject | None = None
    meta: JsonObject | None = None


@record
class Progress:
    """Report progress to a client that sent a progress token. A value that does not grow is not sent."""

    progress: float
    total: float | None = None
    message: str | None = None


@record
class Log:
    """Send a log message to the client: a level of the protocol, and any JSON value."""

    level: str
    data: JsonValue
    logger: str | None = None


@record
class Notify:
    """Send a notification, if the client's revision has the method and the server declares its capability."""

    method: str
    params: JsonObject | None = None


@record
class Question:
    """A request to the client, such as ``elicitation/create``, without its id."""

    method: str
    params: JsonObject | None = None


@record
class Ask:
    """Ask the client. The yield returns all answers by the keys of their questions.

    In some revisions the questions end the request, and the operation runs again from its start when the client has
    answered. An operation must therefore change nothing before its last `Ask`.

    ``declared_only``: omit questions that need a capability that the client does not declare.

    Raises:
        ToolError: in the operation, if the client cannot be asked, refuses, or does not answer in time.
    """

    questions: Mapping[str, Question]
    declared_only: bool = False


@record
class RequireCapability:
    """Raise ToolError in the operation if the client does not declare this capability."""

    capability: str


class ReleaseStream:
    """Close the HTTP stream of the response, which the client resumes later. Other transports ignore it."""


class Detach:
    """Continue as a task, if the tool has ``begins: on_detach`` and the client supports tasks."""


@record
class Pause:
    """Continue after this many seconds."""

    seconds: float


if TYPE_CHECKING:
    Step = Progress | Log | Notify | Ask | RequireCapability | Detach | ReleaseStream | Pause
    StepGenerator = Generator[Step, JsonObject | None, Result | JsonValue]
    Operation = Callable[..., Result | JsonValue | StepGenerator]
