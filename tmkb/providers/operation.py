"""What an operation may give back, and what it may say and ask on the way.

An operation is a function ``(**arguments) → Result | JSON value``, or a generator function that yields `Progress`,
`Log`, `Notify`, `Ask`, `Need`, `Hang` and `Pause` and returns that at its end. It runs between two messages, so it
cannot hold up others for longer than from one yield to the next; it is stopped there when nobody wants its outcome any
more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from tmkb.schema.values import JsonObject, JsonValue


class Result:
    """An answer whose form the operation decides: content blocks as the protocol has them, and facts for the log."""

    __slots__ = ("content", "facts", "is_error", "meta", "structured")

    def __init__(
        self,
        content: list[JsonObject],
        is_error: bool = False,
        facts: JsonObject | None = None,
        structured: JsonObject | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        self.content = content
        self.is_error = is_error
        self.facts = facts or {}
        self.structured = structured
        self.meta = meta


class Progress:
    """How far the operation is: told to a client that asked for it, as long as it grows."""

    __slots__ = ("message", "progress", "total")

    def __init__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.progress = progress
        self.total = total
        self.message = message


class Log:
    """A message for the client's log: a level of the protocol, and any JSON."""

    __slots__ = ("data", "level", "logger")

    def __init__(self, level: str, data: JsonValue, logger: str | None = None) -> None:
        self.level = level
        self.data = data
        self.logger = logger


class Notify:
    """A notification to the client, of a method that its revision has and a capability that the server declares."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: JsonObject | None = None) -> None:
        self.method = method
        self.params = params


class Question:
    """What a client is asked: a method that its revision has for that, and params."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: JsonObject | None = None) -> None:
        self.method = method
        self.params = params


class Ask:
    """Questions to the client, by keys. The yield gives its answers, by the same keys, when all are there; or raises a
    ToolError that says why there are none.

    The client may be asked in a result, and then the operation runs again from its start, with the answers: whatever it
    does before its last `Ask` is to have no effect. ``declared_only``: leave out what the client does not declare.
    """

    __slots__ = ("declared_only", "questions")

    def __init__(self, questions: Mapping[str, Question], declared_only: bool = False) -> None:
        self.questions = questions
        self.declared_only = declared_only


class Need:
    """Go on only with a client that declares this capability: else the yield raises a ToolError."""

    __slots__ = ("capability",)

    def __init__(self, capability: str) -> None:
        self.capability = capability


class Hang:
    """Let the client go and come back for the rest, where its revision and its transport know how; else nothing."""

    __slots__ = ()


class Detach:
    """From here on the operation is a task, where its tool says ``begins: when_told`` and the client can follow one."""

    __slots__ = ()


class Pause:
    """Go on after this many seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


if TYPE_CHECKING:
    Said = Progress | Log | Notify | Ask | Need | Detach | Hang | Pause
    Running = Generator[Said, JsonObject | None, Result | JsonValue]
    Operation = Callable[..., Result | JsonValue | Running]
