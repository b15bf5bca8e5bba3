"""Connects the engine and the providers: carries out effects until there are only bytes left to send.

An operation that is a generator runs one step at a time, between messages: `handle` starts it, `work` goes on with what
is due, and `due` says when that is.

`replace` is how something else is served from one message to the next; what runs ends with the edition it began with.
"""

from __future__ import annotations

import os
import time
from itertools import count
from types import GeneratorType

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import inbound, messages
from tmkb.protocol.budget import Budget
from tmkb.protocol.connection import Connection
from tmkb.protocol.effects import (
    Announce,
    Cancel,
    Counted,
    Drop,
    Fault,
    InputRequired,
    Invoke,
    Log,
    Release,
    Resume,
    Send,
    Trace,
)
from tmkb.providers import registry
from tmkb.schema import template
from tmkb.server import log
from tmkb.server.snapshot import Edition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tmkb.protocol.effects import Effect, Outcome
    from tmkb.protocol.messages import Id
    from tmkb.protocol.tasks import Tasks
    from tmkb.schema.model import Spec
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.server.job import Job

Sent = Send | Release | Drop


class Runtime:
    """One server, ready for any number of connections. Providers are opened when they are first needed."""

    def __init__(
        self, spec: Spec, provider: Callable[[str], registry.Provider], output: log.Log, key: bytes | None = None
    ) -> None:
        """``provider`` opens the provider of a name; ``key`` seals what clients keep for us."""
        self.edition = Edition(spec, provider)
        self.log = output
        self.given_key = key
        self.tasks: Tasks | None = None
        seed = os.urandom(3).hex()
        self.references = (f"{seed}-{number}" for number in count(1))
        self.jobs: list[Job] = []
        self.connections: set[Connection] = set()
        self.budgets: dict[str, Budget] = {}  # by principal
        self.usage: Any = None
        self.begun: dict[Invoke, float] = {}  # when, where usage is counted
        self._take_stock()

    @property
    def spec(self) -> Spec:
        """What is served now."""
        return self.edition.spec

    @property
    def provider(self) -> Callable[[str], registry.Provider]:
        """What opens the provider of a name now."""
        return self.edition.provider

    def replace(self, spec: Spec, provider: Callable[[str], registry.Provider]) -> list[Sent]:
        """From now on serve this; what is sent to clients that were promised to hear of it. Operations that run end
        with what they began with, and so does a client whose revision or state is no longer there."""
        from tmkb.protocol import outbound
        from tmkb.server import renewal

        self.edition = Edition(spec, provider)
        self._take_stock()
        self.log.lines = spec["server"]["log"]
        sent: list[Sent] = []
        for connection in [*self.connections]:
            if not renewal.fits(connection, spec):
                self.log.write("left_behind")
                continue
            for said in renewal.news(connection, spec):
                sent += self._perform(connection, outbound.notify(connection, said))
            connection.adopt(self.edition)
            connection.tasks = self.tasks
        return sent

    def _take_stock(self) -> None:
        """What outlives an edition: the tasks, and the figures of usage."""
        server = self.spec["server"]
        if registry.USAGE in server.get("providers", {}):
            if self.usage is not None:
                self.edition.opened[registry.USAGE] = self.usage
            self.usage = self.edition.open(registry.USAGE)
        for budget in self.budgets.values():
            budget.limit = server["limits"]["principal_bytes"]
        if self.tasks is not None:
            self.tasks.limits = server["limits"]
        elif "extensions" in server["capabilities"]:
            from tmkb.protocol.tasks import Tasks

            self.tasks = Tasks(server["limits"])

    def connect(self, headers: Mapping[str, str] | None = None, principal: str = "") -> Connection:
        """Make a connection for a new peer.

        Args:
            headers: those of the one HTTP request that the connection is for, by names in lower case.
            principal: whose requests these are; empty for anonymous ones and for stdio.
        """
        connection = Connection(self.spec, self.edition.once, self.tasks, traced=self.log.level == "debug")
        connection.adopt(self.edition)
        connection.principal = principal
        connection.budget.parent = self.budget(principal)
        connection.headers = headers
        connection.references = self.references
        self.connections.add(connection)
        return connection

    def budget(self, principal: str) -> Budget:
        """Return the memory budget of ``principal``."""
        if principal not in self.budgets:
            self.budgets[principal] = Budget(self.spec["server"]["limits"]["principal_bytes"])
        return self.budgets[principal]

    def prepare(self) -> None:
        """Open what the first call will need, at a moment when nobody waits."""
        for tool in self.spec["tools"].values():
            try:
                self.edition.operation(tool)
            except Exception as error:  # the call will fail as well, and log the traceback
                named = f"{type(error).__name__}: {error}"
                self.log.write("not_prepared", tool=tool["name"], error=template.cut(named))

    def handle(self, connection: Connection, line: bytes) -> list[Sent]:
        """What is sent because of one line (without its newline), in order; nothing for a notification."""
        return self._received(connection, inbound.receive, line)

    def handle_value(self, connection: Connection, value: JsonValue) -> list[Sent]:
        """The same for a message, or a batch of them, that has been decoded."""
        return self._received(connection, inbound.take, value)

    def handle_too_large(self, connection: Connection) -> list[Sent]:
        """What is sent because of a line that is longer than the server reads."""
        return self._perform(connection, inbound.receive_too_large(connection))

    def due(self) -> float | None:
        """In how many seconds there is something to do for operations that run; None where none does."""
        return max(0.0, min(job.due for job in self.jobs) - time.monotonic()) if self.jobs else None

    def work(self) -> list[Sent]:
        """Go on with every operation whose time has come, by one step each; what is sent, to whomever."""
        now = time.monotonic()
        sent: list[Sent] = []
        for job in [job for job in self.jobs if job.due <= now]:
            try:
                effects = self._step(job)
            except Exception as error:
                sent += self._failed(job.connection, job.invoke, error)
            else:
                sent += self._perform(job.connection, effects)
        return sent

    def end(self, connection: Connection) -> list[Sent]:
        """The peer has closed its side: stop what waits for its answer; return what is sent last."""
        connection.end()
        sent = self._stopped([job for job in self.jobs if job.connection is connection and job.waiting])
        if connection.listening:
            from tmkb.protocol.handlers import subscriptions

            sent += self._perform(connection, subscriptions.conclude(connection))
        return sent

    def abandon(self, connection: Connection) -> None:
        """The peer has gone: stop whatever still runs for it and is no task."""
        self._stopped([job for job in self.jobs if job.connection is connection and job.invoke.task is None])
        self.connections.discard(connection)
        connection.budget.close()

    def stop(self) -> list[Sent]:
        """Stop all operations; return what is sent because of that, such as the rest of a batch."""
        return self._stopped([*self.jobs])

    def _stopped(self, jobs: list[Job]) -> list[Sent]:
        return [sent for job in jobs for sent in self._perform(job.connection, self._stop(job))]

    def _received(
        self, connection: Connection, receive: Callable[[Connection, Any], list[Effect]], given: bytes | JsonValue
    ) -> list[Sent]:
        """Return what is sent because of what ``receive`` reads. No exception passes here: see `_perform`."""
        try:
            effects = receive(connection, given)
        except Exception as error:
            effects = inbound.broken(connection, given, error)
        return self._perform(connection, effects)

    def _perform(self, connection: Connection, effects: Iterable[Effect]) -> list[Sent]:
        """Carry out ``effects`` and return what is sent.

        An exception ends one effect, neither the others nor the process: it is logged, and the request whose operation
        the effect concerns is answered with an internal error.
        """
        sent: list[Sent] = []
        for effect in effects:
            try:
                if isinstance(effect, Send):
                    effect.connection = connection
                    sent.append(effect)
                    self._trace_out(effect.message)
                elif isinstance(effect, Log):
                    self.log.write(effect.line, effect.request_id, **effect.fields)
                elif isinstance(effect, Invoke):
                    sent += self._perform(connection, self._begin(connection, effect))
                elif isinstance(effect, Trace):
                    self._trace(effect.kind, effect.request_id, _shortened(effect.value))
                elif isinstance(effect, Fault):
                    self._fault(effect)
                else:
                    sent += self._moved(connection, effect)
            except Exception as error:
                invoke = effect if isinstance(effect, Invoke) else getattr(effect, "invoke", None)
                sent += self._failed(connection, invoke, error)
        return sent

    def _failed(self, connection: Connection, invoke: Invoke | None, error: Exception) -> list[Sent]:
        """Log an exception of ours, and end the operation of ``invoke``, where there is one, with an internal error."""
        if invoke is None:
            self._fault(Fault(error, None, next(self.references)))
            return []
        for job in [job for job in self.jobs if job.invoke is invoke]:
            self.jobs.remove(job)
            connection = job.connection
        self.begun.pop(invoke, None)
        return self._perform(connection, inbound.fail(connection, invoke, error))

    def _moved(
        self, connection: Connection, effect: Release | Drop | Announce | Cancel | Resume | Counted
    ) -> list[Sent]:
        """What concerns a response, other clients, or an operation that runs."""
        if isinstance(effect, Counted):  # the commonest: each question that was asked before
            if self.usage is not None:
                self.usage.record(effect.tool, effect.failed, None if effect.failed else 0.0, connection.principal)
            return []
        if isinstance(effect, (Release, Drop)):
            effect.connection = connection
            return [effect]
        if isinstance(effect, Announce):
            from tmkb.protocol import outbound

            return [s for each in [*self.connections] for s in self._perform(each, outbound.notify(each, effect.said))]
        job = next((job for job in self.jobs if job.invoke is effect.invoke), None)
        if job is None:  # it has ended meanwhile
            return []
        return self._perform(job.connection, self._turn(job, effect))

    def _begin(self, connection: Connection, invoke: Invoke) -> list[Effect]:
        """Run an operation to its end, or, where it is a generator, to the first thing it says."""
        if invoke.batch is not None and invoke.batch.full:
            return inbound.refuse_for_full_batch(connection, invoke)
        if registry.USAGE in connection.edition.opened:
            self.begun[invoke] = time.perf_counter()
        begun: list[Effect] = []
        if invoke.detaches == "at_start":
            try:
                begun = inbound.detach(connection, invoke)
            except ProtocolError as error:
                return self._completed(connection, invoke, error)
        return begun + self._run(connection, invoke)

    def _run(self, connection: Connection, invoke: Invoke) -> list[Effect]:
        outcome: Any = self._outcome(connection, invoke)
        if isinstance(outcome, GeneratorType):
            from tmkb.server.job import Job

            try:
                job = Job(connection, invoke, outcome, self._answered(connection, invoke))
            except ProtocolError as error:
                outcome = error
            else:
                self.jobs.append(job)
                return self._step(job)
        return self._completed(connection, invoke, outcome)

    def _turn(self, job: Job, effect: Cancel | Resume) -> list[Effect]:
        """Stop an operation, or go on with one that has waited for an answer."""
        if isinstance(effect, Cancel):
            return self._stop(job)
        return self._step(job) if job.take(effect.key, effect.question, effect.answer) else []

    def _step(self, job: Job) -> list[Effect]:
        """What an operation says next, or its outcome at its end."""
        return self._as_begun(job, self._next)

    def _as_begun(self, job: Job, act: Callable[[Job], list[Effect]]) -> list[Effect]:
        """What follows from ``act`` by the edition that the operation began with."""
        connection = job.connection
        now = connection.edition
        if job.edition is now:
            return act(job)
        connection.adopt(job.edition)
        try:
            return act(job)
        finally:
            connection.adopt(now)

    def _next(self, job: Job) -> list[Effect]:
        effects = job.step()
        if not job.ended:
            return effects
        self.jobs.remove(job)
        outcome = job.outcome if job.error is None else self._told(job.invoke, job.error)
        if isinstance(outcome, InputRequired):
            outcome.state = self._sealed(job, outcome.answers)
        return [*effects, *self._completed(job.connection, job.invoke, outcome)]

    def _answered(self, connection: Connection, invoke: Invoke) -> JsonObject:
        """What the client says it was asked and answered before. Raises ProtocolError where we did not say so."""
        sealed = invoke.params.get("requestState") if invoke.revision["asks"] == "in_result" else None
        if sealed is None:
            return {}
        from tmkb.protocol import request_state

        return request_state.unseal(self.key, str(sealed), _about(connection, invoke), time.time())

    def _sealed(self, job: Job, answers: JsonObject) -> str:
        from tmkb.protocol import request_state

        until = time.time() + job.connection.spec["server"]["limits"]["answer_seconds"]
        return request_state.seal(self.key, answers, _about(job.connection, job.invoke), until)

    @property
    def key(self) -> bytes:
        """What is sealed with: given, so that others can read it too, or made when it is first needed."""
        if self.given_key is None:
            self.given_key = os.urandom(32)
        return self.given_key

    def _stop(self, job: Job) -> list[Effect]:
        return self._as_begun(job, self._closed)

    def _closed(self, job: Job) -> list[Effect]:
        self.jobs.remove(job)
        self.begun.pop(job.invoke, None)
        effects = job.stop()
        if job.error is not None:  # a generator that goes on when it is closed
            effects.append(Fault(job.error, job.invoke.request_id, next(self.references)))
        return [*effects, *inbound.cancel(job.connection, job.invoke)]

    def _completed(self, connection: Connection, invoke: Invoke, outcome: Outcome) -> list[Effect]:
        try:
            effects = inbound.complete(connection, invoke, outcome)
        except Exception as error:  # what the operation gave cannot be sent
            effects = inbound.fail(connection, invoke, error)
        if invoke in self.begun:
            self._count(connection, invoke, outcome, effects)
        return effects

    def _count(self, connection: Connection, invoke: Invoke, outcome: Outcome, effects: list[Effect]) -> None:
        """Tell the provider that counts of a call that has ended, well or not."""
        seconds = time.perf_counter() - self.begun.pop(invoke)
        refused = connection.spec["server"]["log"]["refused"]
        failed = any(isinstance(effect, Log) and effect.line is refused for effect in effects)
        if invoke.definition["kind"] == "tool":
            failed = failed or getattr(outcome, "is_error", False)
            self.usage.record(invoke.definition["name"], failed, seconds, connection.principal)

    def _outcome(self, connection: Connection, invoke: Invoke) -> Any:
        """What the operation gave. One that breaks down is logged, and told."""
        started = time.perf_counter()
        definition = invoke.definition
        if self.usage is not None:
            self.usage.principal = connection.principal
        try:
            outcome: Any = connection.edition.operation(definition)(**invoke.arguments)
        except Exception as error:
            return self._told(invoke, error)
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self._trace("timing", invoke.request_id, {"operation": definition["provider"], "ms": took})
        return outcome

    def _told(self, invoke: Invoke, error: Exception) -> ToolError | ProtocolError:
        """What is answered instead of an outcome; what is nobody's fault but ours is logged."""
        if isinstance(error, ToolError | ProtocolError):
            return error
        ref = next(self.references)
        self._fault(Fault(error, invoke.request_id, ref))
        if invoke.definition["kind"] != "tool":
            return ProtocolError("internal_error", ref=ref)
        return ToolError(invoke.definition.get("failure", "tool_failed"), ref=ref)

    def _trace(self, kind: str, request_id: Id | None, value: JsonValue) -> None:
        if self.log.level == "debug":
            self.log.write("trace", request_id, kind=kind, value=messages.compact(value))

    def _trace_out(self, sent: bytes) -> None:
        if self.log.level == "debug":
            decoded = messages.decode(sent)
            for response in decoded if isinstance(decoded, list) else [decoded]:
                if isinstance(response, dict):
                    ours = {key: _shortened(part) if key == "id" else part for key, part in response.items()}
                    self._trace("message_out", messages.readable_id(response), ours)

    def _fault(self, fault: Fault) -> None:
        import traceback  # only a fault pays for it

        for line in "".join(traceback.format_exception(fault.error)).splitlines():
            self.log.write("failed", fault.request_id, line=line, ref=fault.ref)
        self.log.flush()


def _about(connection: Connection, invoke: Invoke) -> JsonObject:
    """Return what a sealed state is bound to: the principal, and the request without what a retry adds to it."""
    carried = ("_meta", "inputResponses", "requestState")
    params: JsonObject = {name: value for name, value in invoke.params.items() if name not in carried}
    return {"principal": connection.principal, "kind": invoke.definition["kind"], "params": params}


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
