"""The life of a request with an operation: from its receipt to its response, its task, or its cancellation.

`schemas/lifecycle/request.yaml` is the table of states and events. An event that the state does not accept raises
`IllegalTransitionError` and changes nothing.
"""

from __future__ import annotations

import sys

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import budget, messages, negotiation, outbound
from tmkb.protocol.effects import Drop, Ended, Invoke, LogException, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from tmkb.protocol import tasks
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Id, Notification, Request
    from tmkb.protocol.outbound import Failure
    from tmkb.providers.operation import Question, Result
    from tmkb.schema import model
    from tmkb.schema.values import JsonObject, JsonValue

    class Handler(Protocol):
        """Serves one method."""

        def begin(self, exchange: Exchange) -> list[Effect]:
            """Return the response, or the effect `Invoke`. Raises ProtocolError."""

    class InvokingHandler(Handler, Protocol):
        """Serves a method by running an operation."""

        def complete(self, exchange: Exchange, outcome: Any) -> list[Effect]:
            """Return the response with the outcome of the operation."""

        def refuse(self, exchange: Exchange, failures: list[Failure]) -> list[Effect]:
            """Return the response for an operation that failed."""


# Name of a handler in revision files → its module in handlers/, imported on first use
HANDLERS = {
    "call_tool": "tools",
    "cancel": "cancellation",
    "cancel_task": "tasks",
    "complete": "completion",
    "discover": "handshake",
    "get_prompt": "prompts",
    "get_task": "tasks",
    "initialize": "handshake",
    "list_prompts": "prompts",
    "listen": "subscriptions",
    "list_resources": "resources",
    "list_templates": "resources",
    "list_tools": "tools",
    "ping": "handshake",
    "read_resource": "resources",
    "set_level": "logging",
    "subscribe": "resources",
    "unsubscribe": "resources",
    "update_task": "tasks",
}
CANCELLED = "cancelled"  # the error of a request that has no response
_handlers: dict[str, Any] = {}


class IllegalTransitionError(Exception):
    """An event that the state of a request does not accept."""


class Lifecycle:
    """The state of one request in the table `schemas/lifecycle/request.yaml`."""

    def __init__(self, table: model.Lifecycle) -> None:
        self.table = table
        self.state = table["start"]

    def move(self, event: str) -> None:
        """Enter the state after ``event``. Raises IllegalTransitionError if the current state does not accept it."""
        accepted = self.table["states"][self.state].get("accepts", {})
        if event not in accepted:
            raise IllegalTransitionError(f"{event} in the state {self.state}")
        self.state = accepted[event]

    def allows(self, event: str) -> bool:
        """Return whether the current state accepts ``event``."""
        return event in self.table["states"][self.state].get("accepts", {})


class Exchange:
    """One request or notification, with its connection, snapshot and governing revision."""

    def __init__(
        self, connection: Connection, revision: model.Revision, message: Request | Notification, id: Id | None = None
    ) -> None:
        self.connection = connection
        self.snapshot: Any = connection.snapshot
        self.revision = revision
        self.id: Any = id  # None for a notification
        self.method = message.method
        self.params = message.params
        self.lifecycle = Lifecycle(self.spec["lifecycles"]["request"])
        self.definition: Any = None  # of the tool, prompt or resource
        self.arguments: JsonObject = {}  # of the operation
        self.log_level: str | None = None  # the least level that the client receives
        self.memory = 0  # bytes reserved in the connection's budget
        self.progress = float("-inf")  # the last that the client was notified of
        self.cache_key: tuple[object, ...] | None = None  # of the result
        self.detaches: str | None = None  # when it becomes a task, if that is possible
        self.task: tasks.Task | None = None
        self.batch: Batch | None = None
        self.batch_index = 0  # of the response
        self.error = ""  # the id of the error in the response
        self.facts: JsonObject = {}  # of the result, as the provider returns them
        self.cached = False  # whether the result is from the cache
        if connection.clock is not None:
            self.began = connection.clock()
            self.trace_headers = connection.trace_headers

    @property
    def spec(self) -> model.Spec:
        """The spec when the request began."""
        spec: model.Spec = self.snapshot.spec
        return spec

    @property
    def rules(self) -> model.Method:
        """The entry of the method in the revision."""
        return self.revision["methods"][self.method]

    @property
    def capabilities(self) -> JsonObject:
        """The client's capabilities."""
        return negotiation.client_capabilities(self.connection.capabilities, self.revision, self.params)

    def invoke(self, definition: model.Definition, arguments: JsonObject) -> list[Effect]:
        """Return the effect that runs the operation of ``definition``."""
        self.definition, self.arguments = definition, arguments
        if "request_metadata" in self.revision:
            meta: Any = self.params["_meta"]
            self.log_level = meta.get(self.revision["request_metadata"]["log_level"])
        else:
            self.log_level = self.connection.log_level or self.revision["logging"]["unset"]
        return [Invoke(self)]


class Batch:
    """The responses to a JSON-RPC batch, in the order of its requests. They are sent when all are complete.

    ``limit``: bytes of responses after which the batch is `full`.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.ids: list[Id] = []  # of the requests, in use until the response is sent
        self.responses: list[bytes | None] = []
        self.pending: set[int] = set()  # indices without a response

    @property
    def full(self) -> bool:
        """Whether further requests of the batch are refused."""
        return self.size >= self.limit

    @property
    def about(self) -> Id | None:
        """The id of the first request, if any."""
        return self.ids[0] if self.ids else None

    def add(self, response: bytes) -> None:
        """Append a response."""
        self.responses.append(response)
        self.size += len(response)

    def reserve(self, exchange: Exchange) -> None:
        """Reserve the next index for the response to ``exchange``."""
        exchange.batch, exchange.batch_index = self, len(self.responses)
        self.pending.add(exchange.batch_index)
        self.responses.append(None)

    def fill(self, exchange: Exchange, response: bytes | None) -> None:
        """Set or replace the response to ``exchange``; None for no response."""
        self.size += len(response or b"") - len(self.responses[exchange.batch_index] or b"")
        self.responses[exchange.batch_index] = response
        self.pending.discard(exchange.batch_index)


class InputRequired:
    """The outcome of an operation that ended with questions: the open ones, and the answers of earlier rounds."""

    def __init__(self, questions: Mapping[str, Question], answers: JsonObject) -> None:
        self.questions = questions
        self.answers = answers
        self.state = ""  # the signed answers, set by the runtime


if TYPE_CHECKING:
    Outcome = Result | JsonValue | ToolError | ProtocolError | InputRequired


def handler(name: str) -> Any:
    """Return the handler that revision files call ``name``."""
    if name not in _handlers:
        module = f"{__package__}.handlers.{HANDLERS[name]}"
        __import__(module)
        _handlers[name] = getattr(sys.modules[module], name)
    return _handlers[name]


def admit(connection: Connection, request_id: Id, batch: Batch | None = None) -> None:
    """Check that no other request uses ``request_id``, and add it to ``batch``, if any.

    Raises:
        ProtocolError: if a request with this id has no response yet. Specification: Basic / Messages / Requests.
    """
    if request_id in connection.in_flight or request_id in connection.listening:
        raise ProtocolError("id_in_use")
    if batch is not None:
        batch.ids.append(request_id)


def refusal(connection: Connection, kind: str, name: str) -> ProtocolError:
    """Return the error for a caller that may not use ``name``, see `caller.Permissions`."""
    permissions = connection.caller.permissions
    scopes = [] if permissions is None else [*permissions.missing_scopes(kind, name)]
    return ProtocolError("insufficient_scope", kind=kind.removesuffix("s"), scopes=[*scopes])


def start_running(exchange: Exchange) -> None:
    """Count ``exchange`` as running, and reserve memory for its params.

    Raises:
        ProtocolError: if the connection has too many running requests, or their params need too much memory.
    """
    connection = exchange.connection
    limit = exchange.spec["server"]["limits"]["running"]
    if len(connection.running) >= limit:
        raise ProtocolError("too_many_running", limit=limit)
    size = budget.footprint([exchange.id, exchange.params])
    connection.budget.reserve(size)
    exchange.memory = size
    connection.running.add(exchange)


def release(exchange: Exchange) -> None:
    """Release the memory and the id of a request. Ids of a batch stay in use until its response is sent."""
    connection = exchange.connection
    connection.running.discard(exchange)
    if exchange.memory:
        connection.budget.release(exchange.memory)
        exchange.memory = 0
    if connection.in_flight.get(exchange.id) is not exchange:
        return
    if exchange.batch is None:
        del connection.in_flight[exchange.id]
    else:
        connection.in_flight[exchange.id] = None


def complete(exchange: Exchange, outcome: Outcome) -> list[Effect]:
    """Return the response to a request whose operation has ended with ``outcome``."""
    effects = _response(exchange, outcome)
    exchange.lifecycle.move("finish")
    release(exchange)
    return [*_deliver(exchange, effects), *ended(exchange)]


def fail(exchange: Exchange, error: Exception) -> list[Effect]:
    """Return the response to a request that ended with ``error``, an unexpected exception."""
    if exchange.lifecycle.allows("finish"):  # else the outcome could not be sent
        exchange.lifecycle.move("finish")
    release(exchange)
    ref = exchange.connection.reference()
    response = outbound.refuse(exchange, ProtocolError("internal_error", ref=ref))
    return [LogException(error, exchange.id, ref), *_deliver(exchange, response), *ended(exchange)]


def cancel(exchange: Exchange) -> list[Effect]:
    """Return the effects of a cancelled request. It has no response, and its batch does not wait for one."""
    exchange.lifecycle.move("cancel")
    release(exchange)
    if exchange.task is not None:
        exchange.task.end()
        return []
    exchange.error = CANCELLED
    if (batch := exchange.batch) is None:
        return [Drop(exchange.connection, exchange.id), *ended(exchange)]
    batch.fill(exchange, None)
    about = batch.about
    dropped: list[Effect] = [] if batch.pending else [Drop(exchange.connection, about)]
    return [*(flush(exchange.connection, batch) or dropped), *ended(exchange)]


def detach(exchange: Exchange) -> list[Effect]:
    """Convert the request to a task and return its response. Raises ProtocolError if there are too many tasks."""
    assert exchange.connection.tasks is not None  # set if the server declares the extension
    exchange.task = exchange.connection.tasks.begin(exchange)
    exchange.lifecycle.move("detach")
    release(exchange)
    sent = _add_to_batch(exchange, outbound.send_result(exchange, "task_begun", exchange.task.view()))
    exchange.batch = None
    return sent + ([] if exchange.connection.clock is None else [Ended(exchange, "")])


def ended(exchange: Exchange) -> list[Effect]:
    """Return the effect for the observer, if there is one. A request that became a task has ended before."""
    return [] if exchange.connection.clock is None or exchange.task is not None else [Ended(exchange, exchange.error)]


def batch_full(batch: Batch) -> ProtocolError:
    """Build the error for a request that is refused because ``batch`` is full."""
    return ProtocolError("batch_answer_too_large", limit=batch.limit)


def flush(connection: Connection, batch: Batch) -> list[Effect]:
    """Return the response to the batch and free its ids; nothing while one response is pending."""
    if batch.pending:
        return []
    about, responses = batch.about, [response for response in batch.responses if response is not None]
    for id_ in batch.ids:
        connection.in_flight.pop(id_, None)
    batch.ids = []
    return [Send(connection, messages.batch(responses), about, is_response=True)] if responses else []


def _response(exchange: Exchange, outcome: Outcome) -> list[Effect]:
    errors = exchange.revision["errors"]
    if isinstance(outcome, InputRequired):
        return _input_required(exchange, outcome)
    if isinstance(outcome, ProtocolError | ToolError) and outcome.error not in errors:  # newer than the client
        outcome = ToolError("error_unknown", cause=outcome.error)
    serving: InvokingHandler = handler(exchange.rules["handler"])
    if not isinstance(outcome, ProtocolError | ToolError):
        return serving.complete(exchange, outcome)
    if errors[outcome.error]["surface"] != "protocol":
        return serving.refuse(exchange, [outbound.failure(outcome, errors)])
    return outbound.refuse(exchange, ProtocolError(outcome.error, **outcome.fields))


def _input_required(exchange: Exchange, outcome: InputRequired) -> list[Effect]:
    questions = {
        key: {"method": question.method, "params": question.params or {}} for key, question in outcome.questions.items()
    }
    values = {"inputRequests": questions, "requestState": outcome.state}
    return outbound.send_result(exchange, "input_required_result", values)


def _deliver(exchange: Exchange, effects: list[Effect]) -> list[Effect]:
    """Send the response, or put it into its batch or its task."""
    tasks = exchange.connection.tasks
    if exchange.task is None or tasks is None:
        return _add_to_batch(exchange, effects)
    for effect in effects:
        if isinstance(effect, Send):
            response: Any = messages.decode(effect.message)
            tasks.settle(exchange.task, response)
    return [effect for effect in effects if not isinstance(effect, Send)]


def _add_to_batch(exchange: Exchange, effects: list[Effect]) -> list[Effect]:
    """Add the response to its batch, if any, which is sent when it is complete."""
    if (batch := exchange.batch) is None:
        return effects
    for effect in effects:
        if isinstance(effect, Send):
            batch.fill(exchange, effect.message)
    return [*(effect for effect in effects if not isinstance(effect, Send)), *flush(exchange.connection, batch)]
