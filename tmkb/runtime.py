"""Connects the engine and the providers: carries out effects until there are only bytes left to send."""

from __future__ import annotations

import time

from tmkb import log, template
from tmkb.engine import message, reception
from tmkb.engine.connection import Connection
from tmkb.engine.effects import Fault, Invoke, Log, Send, Trace
from tmkb.errors import ToolError
from tmkb.providers import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Id
    from tmkb.operation import Operation, Result
    from tmkb.spec.model import Spec, Tool
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
        self.operations: dict[str, Operation] = {}
        self.kept: dict[str, dict[tuple[object, ...], Result | JsonValue]] = {}  # tool → arguments → outcome
        self.once: dict[tuple[str, str], bytes] = {}

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

    def _perform(self, connection: Connection, effects: Iterable[Effect]) -> list[bytes]:
        messages: list[bytes] = []
        for effect in effects:
            if isinstance(effect, Send):
                messages.append(effect.message)
                self._trace_out(effect.message)
            elif isinstance(effect, Log):
                self.log.write(effect.line, effect.request_id, **effect.fields)
            elif isinstance(effect, Invoke):
                messages += self._run(connection, effect)
            elif isinstance(effect, Trace):
                self._trace(effect.kind, effect.request_id, _shortened(effect.value))
            else:
                self._fault(effect)
        return messages

    def _run(self, connection: Connection, invoke: Invoke) -> list[bytes]:
        outcome = self._outcome(invoke)
        try:
            effects = reception.complete(connection, invoke, outcome)
        except Exception as error:  # what the operation gave cannot be sent
            effects = [Fault(error, invoke.request_id), *reception.fail(connection, invoke)]
        return self._perform(connection, effects)

    def _outcome(self, invoke: Invoke) -> Result | JsonValue | ToolError:
        """What the operation gave, now or to the same question before. One that breaks down is logged, and told."""
        started = time.perf_counter()
        kept, question = self.kept.setdefault(invoke.tool["name"], {}), _question(invoke)
        if question is not None and question in kept:
            return kept[question]
        try:
            outcome = self._operation(invoke.tool)(**invoke.arguments)
        except ToolError as error:
            return error
        except Exception as error:
            self._fault(Fault(error, invoke.request_id))
            return ToolError(invoke.tool.get("failure", "tool_failed"))
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self._trace("timing", invoke.request_id, {"operation": invoke.tool["provider"], "ms": took})
        if question is not None:
            kept[question] = outcome
            if len(kept) > invoke.tool["keep"]:
                del kept[next(iter(kept))]
        return outcome

    def _operation(self, tool: Tool) -> Operation:
        operation = self.operations.get(tool["name"])
        if operation is None:
            provider, _, name = tool["provider"].partition(".")
            if provider not in self.opened:
                self.opened[provider] = self.provider(provider)
            operation = self.operations[tool["name"]] = self.opened[provider].operation(name, tool)
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
    if not invoke.tool.get("keep"):
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
