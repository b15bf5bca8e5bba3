"""Connects the engine and the providers: carries out effects until there are only bytes left to send.

An operation that is a generator runs one step at a time, between messages: `handle` starts it, `work` goes on with what
is due, and `due` says when that is.
"""

from __future__ import annotations

import time
from types import GeneratorType

from tmkb import log, template
from tmkb.engine import message, reception
from tmkb.engine.connection import Connection
from tmkb.engine.effects import Cancel, Fault, Invoke, Log, Resume, Send, Trace
from tmkb.errors import ProtocolError, ToolError
from tmkb.providers import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tmkb.engine.connection import Once
    from tmkb.engine.effects import Effect, Outcome
    from tmkb.engine.message import Id
    from tmkb.job import Job
    from tmkb.operation import Operation, Result
    from tmkb.spec.model import Definition, Spec
    from tmkb.values import JsonValue


_LONGEST = 1000  # characters of all arguments together; longer questions are not asked twice


class Runtime:
    """One server, ready for any number of connections. Providers are opened when they are first needed."""

    def __init__(self, spec: Spec, provider: Callable[[str], registry.Provider], output: log.Log) -> None:
        """``provider`` opens the provider of a name."""
        self.spec = spec
        self.provider = provider
        self.log = output
        self.opened: dict[str, registry.Provider] = {}
        self.operations: dict[tuple[str, str], Operation] = {}
        self.kept: dict[str, dict[tuple[object, ...], Result | JsonValue]] = {}  # tool → arguments → outcome
        self.once: Once = {}
        self.jobs: dict[Connection, list[Job]] = {}

    def connect(self) -> Connection:
        """A connection to a new peer."""
        return Connection(self.spec, self.once, traced=self.log.level == "debug")

    def prepare(self) -> None:
        """Open what the first call will need, at a moment when nobody waits."""
        for tool in self.spec["tools"].values():
            try:
                self._operation(tool)
            except Exception:  # fails again when it is called, and is told then
                continue

    def handle(self, connection: Connection, line: bytes) -> list[bytes]:
        """The messages that answer one line (without its newline), in order; none for a notification."""
        return self._perform(connection, reception.receive(connection, line))

    def handle_too_large(self, connection: Connection) -> list[bytes]:
        """The messages that answer a line which is longer than the server reads."""
        return self._perform(connection, reception.receive_too_large(connection))

    def due(self, connection: Connection) -> float | None:
        """In how many seconds there is something to do for operations that run; None where none does."""
        jobs = self.jobs.get(connection)
        return max(0.0, min(job.due for job in jobs) - time.monotonic()) if jobs else None

    def work(self, connection: Connection) -> list[bytes]:
        """Go on with every operation whose time has come, by one step each; the messages that it leads to."""
        now = time.monotonic()
        due = [job for job in self.jobs.get(connection, ()) if job.due <= now]
        return [sent for job in due for sent in self._perform(connection, self._step(connection, job))]

    def end(self, connection: Connection) -> None:
        """The peer has closed its side: what waits for its answer is stopped, the rest may go on."""
        connection.end()
        for job in [job for job in self.jobs.get(connection, ()) if job.asking]:
            self._stop(connection, job)

    def abandon(self, connection: Connection) -> None:
        """Stop whatever still runs."""
        for job in [*self.jobs.get(connection, ())]:
            self._stop(connection, job)
        self.jobs.pop(connection, None)

    def _perform(self, connection: Connection, effects: Iterable[Effect]) -> list[bytes]:
        messages: list[bytes] = []
        for effect in effects:
            if isinstance(effect, Send):
                messages.append(effect.message)
                self._trace_out(effect.message)
            elif isinstance(effect, Log):
                self.log.write(effect.line, effect.request_id, **effect.fields)
            elif isinstance(effect, Invoke):
                messages += self._perform(connection, self._begin(connection, effect))
            elif isinstance(effect, Trace):
                self._trace(effect.kind, effect.request_id, _shortened(effect.value))
            elif isinstance(effect, Fault):
                self._fault(effect)
            else:
                messages += self._perform(connection, self._turn(connection, effect))
        return messages

    def _begin(self, connection: Connection, invoke: Invoke) -> list[Effect]:
        """Run an operation to its end, or, where it is a generator, to the first thing it says."""
        outcome: Any = self._outcome(invoke)
        if isinstance(outcome, GeneratorType):
            from tmkb.job import Job

            try:
                job = Job(connection, invoke, outcome)
            except ProtocolError as error:
                outcome = error
            else:
                self.jobs.setdefault(connection, []).append(job)
                return self._step(connection, job)
        return self._completed(connection, invoke, outcome)

    def _turn(self, connection: Connection, effect: Cancel | Resume) -> list[Effect]:
        """Stop an operation, or go on with one that has waited for an answer."""
        job = next(job for job in self.jobs[connection] if job.invoke is effect.invoke)
        if isinstance(effect, Cancel):
            return self._stop(connection, job)
        job.answer = effect.answer
        return self._step(connection, job)

    def _step(self, connection: Connection, job: Job) -> list[Effect]:
        """What an operation says next, or its outcome at its end."""
        try:
            effects = job.step()
        except Exception as error:
            self.jobs[connection].remove(job)
            return self._completed(connection, job.invoke, self._told(job.invoke, error))
        if not job.ended:
            return effects
        self.jobs[connection].remove(job)
        return [*effects, *self._completed(connection, job.invoke, job.outcome)]

    def _stop(self, connection: Connection, job: Job) -> list[Effect]:
        self.jobs[connection].remove(job)
        try:
            effects = job.stop()
        except Exception as error:  # a generator that goes on when it is closed
            effects = [Fault(error, job.invoke.request_id)]
        return [*effects, *reception.cancel(connection, job.invoke)]

    def _completed(self, connection: Connection, invoke: Invoke, outcome: Outcome) -> list[Effect]:
        try:
            return reception.complete(connection, invoke, outcome)
        except Exception as error:  # what the operation gave cannot be sent
            return [Fault(error, invoke.request_id), *reception.fail(connection, invoke)]

    def _outcome(self, invoke: Invoke) -> Any:
        """What the operation gave, now or to the same question before. One that breaks down is logged, and told."""
        started = time.perf_counter()
        definition = invoke.definition
        kept, question = self.kept.setdefault(definition["name"], {}), _question(invoke)
        if question is not None and question in kept:
            return kept[question]
        try:
            outcome: Any = self._operation(definition)(**invoke.arguments)
        except Exception as error:
            return self._told(invoke, error)
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self._trace("timing", invoke.request_id, {"operation": definition["provider"], "ms": took})
        if question is not None and not isinstance(outcome, GeneratorType):
            kept[question] = outcome
            if len(kept) > definition["keep"]:
                del kept[next(iter(kept))]
        return outcome

    def _told(self, invoke: Invoke, error: Exception) -> ToolError | ProtocolError:
        """What is answered instead of an outcome; what is nobody's fault but ours is logged."""
        if isinstance(error, ToolError | ProtocolError):
            return error
        self._fault(Fault(error, invoke.request_id))
        if invoke.definition["kind"] != "tool":
            return ProtocolError("internal_error")
        return ToolError(invoke.definition.get("failure", "tool_failed"))

    def _operation(self, definition: Definition) -> Operation:
        called = definition["kind"], definition["name"]
        operation = self.operations.get(called)
        if operation is None:
            provider, _, name = definition["provider"].partition(".")
            if provider not in self.opened:
                self.opened[provider] = self.provider(provider)
            operation = self.opened[provider].operation(name, definition)
            self.operations[called] = operation
        return operation

    def _trace(self, kind: str, request_id: Id | None, value: JsonValue) -> None:
        if self.log.level == "debug":
            self.log.write("trace", request_id, kind=kind, value=message.compact(value))

    def _trace_out(self, sent: bytes) -> None:
        if self.log.level == "debug":
            decoded = message.decode(sent)
            for response in decoded if isinstance(decoded, list) else [decoded]:
                if isinstance(response, dict):
                    ours = {key: _shortened(part) if key == "id" else part for key, part in response.items()}
                    self._trace("message_out", message.readable_id(response), ours)

    def _fault(self, fault: Fault) -> None:
        import traceback  # only a fault pays for it

        for line in "".join(traceback.format_exception(fault.error)).splitlines():
            self.log.write("failed", fault.request_id, line=line)
        self.log.flush()


def _question(invoke: Invoke) -> tuple[object, ...] | None:
    """What the outcome can be kept by; None where it is not kept, or the arguments are no short texts."""
    if not invoke.definition.get("keep"):
        return None
    values = invoke.arguments.values()
    if sum(len(value) if isinstance(value, str) else _LONGEST for value in values) >= _LONGEST:
        return None
    return tuple(invoke.arguments.items())


def _shortened(value: JsonValue, depth: int = 8) -> JsonValue:
    """``value`` of a peer for the debug log: long strings cut, deep nesting left out."""
    if isinstance(value, str):
        return template.cut(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [_shortened(inner, depth - 1) for inner in value]
    return {template.cut(key): _shortened(inner, depth - 1) for key, inner in value.items()}
