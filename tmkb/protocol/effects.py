"""What the engine asks of the runtime."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tmkb.errors import ProtocolError, ToolError
    from tmkb.protocol.messages import Id, Request
    from tmkb.protocol.refusal import Failure
    from tmkb.providers.operation import Notify, Question, Result
    from tmkb.schema.model import Definition, LogLine, Revision
    from tmkb.schema.values import JsonObject, JsonValue

    Finish = Callable[[Any, "Invoke", Any], list["Effect"]]  # connection, invoke, outcome
    Refuse = Callable[[Any, "Invoke", list[Failure]], list["Effect"]]  # connection, invoke, what went wrong
    Finishing = tuple[Finish, Refuse]


class Send:
    """Put this message on the wire: an object, or the array that answers a batch, encoded.

    ``about``: the request that it belongs to, None where that is none in particular. ``answers``: whether it is what
    that request waits for. ``status``: what an HTTP response has to say of it. The runtime adds whose it is.
    """

    __slots__ = ("about", "answers", "connection", "message", "status")

    def __init__(
        self, message: bytes, about: Id | None = None, answers: bool = False, status: int | None = None
    ) -> None:
        self.message = message
        self.about = about
        self.answers = answers
        self.status = status
        self.connection: Any = None


class Release:
    """Let the response go in which the request ``about`` would be answered: the client comes back for the rest."""

    __slots__ = ("about", "connection")

    def __init__(self, about: Id) -> None:
        self.about = about
        self.connection: Any = None


class Drop:
    """The request ``about`` gets no response: nobody is to wait for it."""

    __slots__ = ("about", "connection")

    def __init__(self, about: Id | None) -> None:
        self.about = about
        self.connection: Any = None


class Announce:
    """Tell every client that wants to hear it."""

    __slots__ = ("said",)

    def __init__(self, said: Notify) -> None:
        self.said = said


class Invoke:
    """Run the operation of ``definition`` with ``arguments``; hand its outcome to `reception.complete`.

    Carries the revision that governs the request, by which the answer is shaped, what the client declares and wants,
    what makes a response of an outcome (``finish``) or of what went wrong (``refuse``), and the batch
    that waits for it.
    """

    __slots__ = (
        "arguments",
        "batch",
        "capabilities",
        "definition",
        "detaches",
        "finish",
        "held",
        "log_level",
        "params",
        "place",
        "progress",
        "progress_token",
        "question",
        "refuse",
        "request_id",
        "revision",
        "task",
    )

    def __init__(
        self, request: Request, definition: Definition, arguments: JsonObject, revision: Revision, finishing: Finishing
    ) -> None:
        meta: Any = request.params.get("_meta", {})
        self.request_id = request.id
        self.params = request.params
        self.definition = definition
        self.arguments = arguments
        self.revision = revision
        self.finish, self.refuse = finishing
        self.capabilities: JsonObject = {}
        self.held = 0  # bytes of the budget of its connection, while it runs
        self.log_level: str | None = None
        self.progress_token: Id | None = meta.get("progressToken")
        self.progress = float("-inf")  # as far as the client was told
        self.question: tuple[object, ...] | None = None  # what its answer is kept by, if it is
        self.detaches: str | None = None  # from where on it is a task, if it can be one
        self.task: Any = None
        self.batch: Batch | None = None
        self.place = 0


class InputRequired:
    """The outcome of an operation that asks the client in its result: the questions, and its answers so far."""

    __slots__ = ("answers", "questions", "state")

    def __init__(self, questions: Mapping[str, Question], answers: JsonObject) -> None:
        self.questions = questions
        self.answers = answers
        self.state = ""  # the same, sealed for the client to keep


class Cancel:
    """Stop the operation that ``invoke`` started; nobody wants its outcome."""

    __slots__ = ("invoke",)

    def __init__(self, invoke: Invoke) -> None:
        self.invoke = invoke


class Resume:
    """Deliver the answer to ``question``, which ``invoke`` asked under ``key``, or the reason why there is none."""

    __slots__ = ("answer", "invoke", "key", "question")

    def __init__(self, invoke: Invoke, key: str, question: Question, answer: JsonObject | ToolError) -> None:
        self.invoke = invoke
        self.key = key
        self.question = question
        self.answer = answer


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
    """Write down an exception that is nobody's fault but ours; ``ref`` is what the peer was told to name it by."""

    __slots__ = ("error", "ref", "request_id")

    def __init__(self, error: BaseException, request_id: Id | None, ref: str) -> None:
        self.error = error
        self.request_id = request_id
        self.ref = ref


class Counted:
    """Count a call that no operation was run for: one that was refused, or had its answer kept."""

    __slots__ = ("failed", "tool")

    def __init__(self, tool: str, failed: bool) -> None:
        self.tool = tool
        self.failed = failed


class Batch:
    """The answer to an array of messages: responses in the order of their requests, sent when the last is there.

    ``limit``: bytes of responses after which the batch is `full`.
    """

    __slots__ = ("ids", "limit", "responses", "running", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.ids: list[Id] = []  # of its requests, in use until the batch is answered
        self.responses: list[bytes | None] = []
        self.running: set[int] = set()  # places whose response is not there yet

    @property
    def full(self) -> bool:
        """Whether no more requests of the batch are to be carried out."""
        return self.size >= self.limit

    @property
    def about(self) -> Id | None:
        """The id of one of its requests; None if it has none."""
        return self.ids[0] if self.ids else None

    def add(self, response: bytes) -> None:
        """The next response, known at once."""
        self.responses.append(response)
        self.size += len(response)

    def reserve(self, invoke: Invoke) -> None:
        """Keep the next place for the response to ``invoke``."""
        invoke.batch, invoke.place = self, len(self.responses)
        self.running.add(invoke.place)
        self.responses.append(None)

    def fill(self, invoke: Invoke, response: bytes | None) -> None:
        """The response to ``invoke`` is there, perhaps instead of one that could not be sent; None: there is none."""
        self.size += len(response or b"") - len(self.responses[invoke.place] or b"")
        self.responses[invoke.place] = response
        self.running.discard(invoke.place)

    def complete(self) -> list[bytes]:
        """All responses when the last is there; before that, nothing."""
        return [] if self.running else [response for response in self.responses if response is not None]


Effect = Send | Release | Drop | Announce | Invoke | Cancel | Resume | Log | Trace | Fault | Counted
if TYPE_CHECKING:
    Outcome = Result | JsonValue | ToolError | ProtocolError | InputRequired
