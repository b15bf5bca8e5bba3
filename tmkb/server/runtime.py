"""Connect the engine with the providers: carry out effects until only messages to send remain.

An operation that is a generator runs one step at a time, between messages. `handle` starts it, `work` continues all
operations that are due, and `due` returns the time until then.

`replace` switches to another snapshot between two messages. A running request keeps the snapshot that it began with.
"""

from __future__ import annotations

import os
import time
from itertools import count

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import inbound, messages, outbound, requests
from tmkb.protocol.budget import Budget
from tmkb.protocol.caller import ANONYMOUS
from tmkb.protocol.connection import Connection
from tmkb.protocol.effects import (
    Broadcast,
    Cancel,
    Drop,
    Ended,
    Invoke,
    Log,
    LogException,
    RecordUsage,
    ReleaseStream,
    Resume,
    Send,
    Sent,
    Trace,
)
from tmkb.protocol.requests import InputRequired
from tmkb.providers import registry
from tmkb.schema import template
from tmkb.server import log
from tmkb.server.snapshot import Snapshot, can_serve, changed_lists
from tmkb.stdlib import GeneratorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tmkb.insight.observer import Observer
    from tmkb.protocol.caller import Caller
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Id
    from tmkb.protocol.requests import Exchange, Outcome
    from tmkb.protocol.tasks import Tasks
    from tmkb.providers.operation import Notify
    from tmkb.schema.model import Spec
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.server.job import Job
    from tmkb.transport.probes import Condition

    Opener = Callable[[str], registry.Provider]


class Runtime:
    """A server for any number of connections. Providers are opened on first use."""

    def __init__(
        self,
        spec: Spec,
        provider: Opener,
        output: log.Log,
        keys: Sequence[bytes] = (),
        observer: Observer | None = None,
        views: Mapping[str, tuple[Spec, Opener]] | None = None,
    ) -> None:
        """Initialize the server.

        Args:
            spec: what it serves.
            provider: opens a provider by name.
            output: the log.
            keys: the first signs request states, and all verify them; empty for a random key.
            observer: receives each finished request.
            views: specs and providers for callers with a view, by its name. ``spec`` has the limits and the settings.
        """
        self.snapshots = _snapshots(spec, provider, views)
        self.log = output
        self.configured_keys = keys
        self.observer = observer
        self.tasks: Tasks | None = None
        seed = os.urandom(3).hex()
        self.references = (f"{seed}-{number}" for number in count(1))
        self.jobs: list[Job] = []
        self.connections: set[Connection] = set()
        self.budgets: dict[str, Budget] = {}  # by principal
        self.conditions: dict[str, Condition] = {}  # by name, what `/readyz` shows
        self.usage: Any = None
        self.start_times: dict[Exchange, float] = {}  # of requests whose usage is recorded
        self.publish: Callable[[Notify], None] = lambda _: None  # to the clients of other replicas
        self._apply_settings()
        if observer is not None:
            observer.measure(self.figures)
            observer.identify(self.identity)

    @property
    def snapshot(self) -> Snapshot:
        """What callers without a view get."""
        return self.snapshots[""]

    @property
    def spec(self) -> Spec:
        """The current spec."""
        return self.snapshot.spec

    @property
    def provider(self) -> Callable[[str], registry.Provider]:
        """The function that opens a provider by name."""
        return self.snapshot.provider

    def replace(
        self, spec: Spec, provider: Opener, views: Mapping[str, tuple[Spec, Opener]] | None = None
    ) -> list[Sent]:
        """Serve another spec and other views from the next message on; return list-changed notifications.

        A running request keeps its snapshot. So does a connection whose revision, state or view is gone.
        """
        self.snapshots = _snapshots(spec, provider, views)
        self._apply_settings()
        self.log.lines = spec["server"]["log"]
        sent: list[Sent] = []
        for connection in [*self.connections]:
            snapshot = self.snapshots.get(connection.caller.view)
            if snapshot is None or not can_serve(snapshot, connection):
                self.log.write("left_behind")
                continue
            for item in changed_lists(connection, snapshot):
                sent += self._perform(outbound.broadcast(connection, item))
            connection.reload(snapshot, self.tasks)
        return sent

    def _apply_settings(self) -> None:
        """Apply the snapshot's settings to tasks, usage figures and memory budgets, which outlive snapshots."""
        server = self.spec["server"]
        if registry.USAGE in server.get("providers", {}):
            self.usage = self.usage or self.snapshot.open(registry.USAGE)
            for snapshot in self.snapshots.values():
                snapshot.providers[registry.USAGE] = self.usage
        for budget in self.budgets.values():
            budget.limit = server["limits"]["principal_bytes"]
        if self.tasks is not None:
            self.tasks.limits = server["limits"]
        elif "extensions" in server["capabilities"]:
            from tmkb.protocol.tasks import Tasks

            self.tasks = Tasks(server["limits"], _unix_time, _monotonic_time, _random_id)

    def connect(self, headers: Mapping[str, str] | None = None, caller: Caller = ANONYMOUS) -> Connection:
        """Return a connection for a new peer.

        Args:
            headers: of the HTTP request, by lower-case name, if the connection is for a single request.
            caller: the owner of the requests. Its view, which must exist, chooses what is served.
        """
        connection = Connection(self.snapshots[caller.view], self.tasks, self.log.level == "debug", caller)
        connection.budget.parent = self.budget(caller.principal)
        connection.headers = headers
        connection.references = self.references
        if self.observer is not None:
            connection.clock = time.perf_counter
            connection.trace_headers = headers or {}
        self.connections.add(connection)
        return connection

    def budget(self, principal: str) -> Budget:
        """Return the memory budget of ``principal``."""
        if principal not in self.budgets:
            self.budgets[principal] = Budget(self.spec["server"]["limits"]["principal_bytes"])
        return self.budgets[principal]

    def figures(self) -> dict[str, int]:
        """Return the current numbers of connections and of what they have open. Other threads may call this."""
        connections = [*self.connections]
        listening = [stream for each in connections for stream in [*each.listening.values()]]
        return {
            "connections": len(connections),
            "in_flight": sum(len(each.in_flight) for each in connections),
            "subscriptions": len(listening) + sum(len(each.subscribed) for each in connections),
            "tasks": 0 if self.tasks is None else len(self.tasks.by_id),
        }

    def identity(self) -> dict[str, str]:
        """Return the name and the version of what is served."""
        return {"server": self.spec["server"]["name"], "version": self.spec["server"]["version"]}

    def warm_up(self) -> None:
        """Open the operations of all tools, while no client waits."""
        for snapshot in self.snapshots.values():
            for tool in snapshot.spec["tools"].values():
                try:
                    self._operation(snapshot, tool)
                except Exception as error:  # a call fails too, and logs the traceback
                    named = f"{type(error).__name__}: {error}"
                    self.log.write("not_prepared", tool=tool["name"], error=template.cut(named))

    def handle(self, connection: Connection, line: bytes) -> list[Sent]:
        """Handle one line without its newline; return the messages to send, in order."""
        return self._receive(connection, inbound.receive, line)

    def handle_value(self, connection: Connection, value: JsonValue) -> list[Sent]:
        """Handle a decoded message or batch; return the messages to send, in order."""
        return self._receive(connection, inbound.receive_value, value)

    def handle_too_large(self, connection: Connection) -> list[Sent]:
        """Handle a line that exceeds the size limit; return the messages to send."""
        return self._perform(inbound.receive_too_large(connection))

    def due(self) -> float | None:
        """Return the seconds until an operation continues; None if none is running."""
        return max(0.0, min(job.steps.resume_at for job in self.jobs) - time.monotonic()) if self.jobs else None

    def work(self) -> list[Sent]:
        """Run one step of every operation that is due; return the messages to send, for any connection."""
        now = time.monotonic()
        sent: list[Sent] = []
        for job in [job for job in self.jobs if job.steps.resume_at <= now]:
            try:
                effects = self._step(job)
            except Exception as error:
                sent += self._fail(job.exchange, error)
            else:
                sent += self._perform(effects)
        return sent

    def broadcast(self, notification: Notify) -> list[Sent]:
        """Return ``notification`` for every subscribed client."""
        return [s for each in [*self.connections] for s in self._perform(outbound.broadcast(each, notification))]

    def end(self, connection: Connection) -> list[Sent]:
        """End a connection whose peer has closed its input; return the last messages to send.

        Operations that wait for the peer's answers are stopped.
        """
        connection.end()
        sent = self._stop_all([job for job in self._jobs_of(connection) if job.steps.questions])
        if connection.listening:
            from tmkb.protocol.handlers import subscriptions

            sent += self._perform(subscriptions.end(connection))
        return sent

    def abandon(self, connection: Connection) -> None:
        """Remove a connection whose peer has disconnected, and stop its operations except tasks."""
        self._stop_all([job for job in self._jobs_of(connection) if job.exchange.task is None])
        self.connections.discard(connection)
        connection.budget.close()

    def stop(self) -> list[Sent]:
        """Stop all operations; return the messages to send, such as the response to a batch."""
        return self._stop_all([*self.jobs])

    def _jobs_of(self, connection: Connection) -> list[Job]:
        return [job for job in self.jobs if job.exchange.connection is connection]

    def _stop_all(self, jobs: list[Job]) -> list[Sent]:
        return [sent for job in jobs for sent in self._perform(self._stop(job))]

    def _receive(
        self, connection: Connection, receive: Callable[[Connection, Any], list[Effect]], message: bytes | JsonValue
    ) -> list[Sent]:
        """Handle a message and return the messages to send. Exceptions are handled, also by `_perform`."""
        if self.observer is not None and isinstance(message, bytes):
            self.observer.received(len(message))
        try:
            effects = receive(connection, message)
        except Exception as error:
            effects = inbound.fail(connection, message, error)
        return self._perform(effects)

    def _perform(self, effects: Iterable[Effect]) -> list[Sent]:
        """Carry out ``effects`` and return the messages to send.

        An exception ends only its effect. It is logged, and the request of the effect gets an internal error.
        """
        sent: list[Sent] = []
        for effect in effects:
            try:
                if isinstance(effect, Send):
                    sent.append(effect)
                    self._on_send(effect.message)
                elif isinstance(effect, Log):
                    self.log.write(effect.line, effect.request_id, **effect.fields)
                elif isinstance(effect, Invoke):
                    sent += self._perform(self._begin(effect.exchange))
                elif isinstance(effect, Trace):
                    self._trace(effect.kind, effect.request_id, _shortened(effect.value))
                elif isinstance(effect, LogException):
                    self._log_exception(effect)
                else:
                    sent += self._control(effect)
            except Exception as error:
                sent += self._fail(getattr(effect, "exchange", None), error)
        return sent

    def _fail(self, exchange: Exchange | None, error: Exception) -> list[Sent]:
        """Log an unexpected exception, and end ``exchange``, if any, with an internal error."""
        if exchange is None:
            self._log_exception(LogException(error, None, next(self.references)))
            return []
        self.jobs = [job for job in self.jobs if job.exchange is not exchange]
        self.start_times.pop(exchange, None)
        return self._perform(requests.fail(exchange, error))

    def _control(self, effect: ReleaseStream | Drop | Broadcast | Cancel | Resume | RecordUsage | Ended) -> list[Sent]:
        """Carry out an effect on usage figures, a response stream, other clients, or a running operation."""
        if isinstance(effect, (RecordUsage, Ended)):  # first, because cached results are the most frequent
            self._record(effect)
            return []
        if isinstance(effect, (ReleaseStream, Drop)):
            return [effect]
        if isinstance(effect, Broadcast):
            self.publish(effect.notification)
            return self.broadcast(effect.notification)
        job = next((job for job in self.jobs if job.exchange is effect.exchange), None)
        if job is None:  # it has already ended
            return []
        if isinstance(effect, Cancel):
            return self._perform(self._stop(job))
        return self._perform(self._step(job) if job.steps.deliver(effect.key, effect.question, effect.answer) else [])

    def _record(self, effect: RecordUsage | Ended) -> None:
        """Pass on a call without an operation to the usage provider, or the end of a request to the observer."""
        if isinstance(effect, RecordUsage):
            if self.usage is not None:
                self.usage.record(effect.tool, effect.failed, None if effect.failed else 0.0, effect.principal)
        elif self.observer is not None:
            self.observer.ended(effect.exchange, effect.error)

    def _begin(self, exchange: Exchange) -> list[Effect]:
        """Start an operation: run it to its end or, if it is a generator, to its first yield with effects."""
        if exchange.batch is not None and exchange.batch.full:
            return requests.complete(exchange, requests.batch_full(exchange.batch))
        if registry.USAGE in exchange.snapshot.providers:
            self.start_times[exchange] = time.perf_counter()
        effects: list[Effect] = []
        if exchange.detaches == "at_start":
            try:
                effects = requests.detach(exchange)
            except ProtocolError as error:
                return self._complete(exchange, error)
        else:
            exchange.lifecycle.move("begin")
        return effects + self._run(exchange)

    def _run(self, exchange: Exchange) -> list[Effect]:
        outcome: Any = self._outcome(exchange)
        if isinstance(outcome, GeneratorType):
            from tmkb.server.job import Job

            try:
                job = Job(exchange, outcome, self._earlier_answers(exchange), _monotonic_time)
            except ProtocolError as error:
                outcome = error
            else:
                self.jobs.append(job)
                return self._step(job)
        return self._complete(exchange, outcome)

    def _step(self, job: Job) -> list[Effect]:
        """Run an operation to its next yield with effects, or complete its request."""
        effects = job.step()
        if not job.ended:
            return effects
        self.jobs.remove(job)
        outcome = job.outcome if job.error is None else self._outcome_of(job.exchange, job.error)
        if isinstance(outcome, InputRequired):
            outcome.state = self._sign(job.exchange, outcome.answers)
        return [*effects, *self._complete(job.exchange, outcome)]

    def _earlier_answers(self, exchange: Exchange) -> JsonObject:
        """Return the answers of earlier rounds in the request state. Raises ProtocolError if it is invalid."""
        state = exchange.params.get("requestState") if exchange.revision["client_requests"] == "in_result" else None
        if state is None:
            return {}
        from tmkb.protocol import request_state

        return request_state.verify(self.keys, str(state), _subject(exchange), time.time())

    def _sign(self, exchange: Exchange, answers: JsonObject) -> str:
        from tmkb.protocol import request_state

        expires = time.time() + exchange.spec["server"]["limits"]["answer_seconds"]
        return request_state.sign(self.keys[0], answers, _subject(exchange), expires)

    @property
    def keys(self) -> Sequence[bytes]:
        """The keys of request states: the configured ones, or a random one. The first signs."""
        if not self.configured_keys:
            self.configured_keys = [os.urandom(32)]
        return self.configured_keys

    def _stop(self, job: Job) -> list[Effect]:
        self.jobs.remove(job)
        self.start_times.pop(job.exchange, None)
        effects = job.stop()
        if job.error is not None:  # the generator ignored or failed on close
            effects.append(LogException(job.error, job.exchange.id, next(self.references)))
        return [*effects, *requests.cancel(job.exchange)]

    def _complete(self, exchange: Exchange, outcome: Outcome) -> list[Effect]:
        try:
            effects = requests.complete(exchange, outcome)
        except Exception as error:  # the outcome cannot be sent
            effects = requests.fail(exchange, error)
        if exchange in self.start_times:
            self._count(exchange, outcome, effects)
        return effects

    def _count(self, exchange: Exchange, outcome: Outcome, effects: list[Effect]) -> None:
        """Record a completed call with the usage provider."""
        seconds = time.perf_counter() - self.start_times.pop(exchange)
        refused = exchange.spec["server"]["log"]["refused"]
        failed = any(isinstance(effect, Log) and effect.line is refused for effect in effects)
        if exchange.definition["kind"] == "tool":
            failed = failed or getattr(outcome, "is_error", False)
            principal = exchange.connection.principal
            self.usage.record(exchange.definition["name"], failed, seconds, principal)

    def _operation(self, snapshot: Snapshot, definition: Any) -> Callable[..., Any]:
        operation = snapshot.operations.get((definition["kind"], definition["name"]))
        return snapshot.operation(definition) if operation is None else operation

    def _outcome(self, exchange: Exchange) -> Any:
        """Call the operation and return its outcome. An exception becomes an error."""
        started = time.perf_counter()
        if self.usage is not None:
            self.usage.principal = exchange.connection.principal
        try:
            outcome: Any = self._operation(exchange.snapshot, exchange.definition)(**exchange.arguments)
        except Exception as error:
            return self._outcome_of(exchange, error)
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self._trace("timing", exchange.id, {"operation": exchange.definition["provider"], "ms": took})
        return outcome

    def _outcome_of(self, exchange: Exchange, error: Exception) -> ToolError | ProtocolError:
        """Convert an exception of an operation to its outcome, and log an unexpected one."""
        if isinstance(error, ToolError | ProtocolError):
            return error
        ref = next(self.references)
        self._log_exception(LogException(error, exchange.id, ref))
        if exchange.definition["kind"] != "tool":
            return ProtocolError("internal_error", ref=ref)
        return ToolError(exchange.definition.get("on_exception", "tool_failed"), ref=ref)

    def _trace(self, kind: str, request_id: Id | None, value: JsonValue) -> None:
        if self.log.level == "debug":
            self.log.write("trace", request_id, kind=kind, value=messages.compact(value))

    def _on_send(self, sent: bytes) -> None:
        if self.observer is not None:
            self.observer.sent(len(sent))
        decoded = messages.decode(sent) if self.log.level == "debug" else []
        for response in decoded if isinstance(decoded, list) else [decoded]:
            if isinstance(response, dict):
                traced = {key: _shortened(part) if key == "id" else part for key, part in response.items()}
                self._trace("message_out", messages.readable_id(response), traced)

    def _log_exception(self, effect: LogException) -> None:
        import traceback

        for line in "".join(traceback.format_exception(effect.error)).splitlines():
            self.log.write("failed", effect.request_id, line=line, ref=effect.ref)
        self.log.flush()


def _snapshots(spec: Spec, provider: Opener, views: Mapping[str, tuple[Spec, Opener]] | None) -> dict[str, Snapshot]:
    """Return a snapshot for each view; "" is the view of callers without one."""
    return {name: Snapshot(*each) for name, each in {"": (spec, provider), **(views or {})}.items()}


def _unix_time() -> float:
    return time.time()


def _monotonic_time() -> float:
    return time.monotonic()


def _random_id() -> str:
    return os.urandom(16).hex()


def _subject(exchange: Exchange) -> JsonObject:
    """Return the subject of a request state: the principal, and the request without the params of a retry."""
    retry = ("_meta", "inputResponses", "requestState")
    params: JsonObject = {name: value for name, value in exchange.params.items() if name not in retry}
    return {"principal": exchange.connection.principal, "kind": exchange.definition["kind"], "params": params}


def _shortened(value: JsonValue, depth: int = 8) -> JsonValue:
    """Cut long strings and deep nesting of a peer's ``value`` for the debug log."""
    if isinstance(value, str):
        return template.cut(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [_shortened(inner, depth - 1) for inner in value]
    return {template.cut(key): _shortened(inner, depth - 1) for key, inner in value.items()}
