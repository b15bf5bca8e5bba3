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
    from collections.abc import Iterable, Mapping

    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Id
    from tmkb.operation import Operation, Result
    from tmkb.spec.model import Spec, Tool
    from tmkb.values import JsonValue


class Runtime:
    """One server, ready for any number of connections."""

    def __init__(self, spec: Spec, providers: Mapping[str, registry.Provider], output: log.Log) -> None:
        self.spec = spec
        self.providers = dict(providers)
        self.log = output
        self.operations: dict[str, Operation] = {}

    def connect(self) -> Connection:
        """A connection to a new peer."""
        return Connection(self.spec, traced=self.log.level == "debug")

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
                messages.append(message.encode(effect.message))
                self._trace_out(effect.message)
            elif isinstance(effect, Invoke):
                messages += self._run(connection, effect)
            elif isinstance(effect, Log):
                self.log.write(effect.line, effect.request_id, **effect.fields)
            elif isinstance(effect, Trace):
                self._trace(effect.kind, effect.request_id, _shortened(effect.value))
            else:
                self._fault(effect)
        return messages

    def _run(self, connection: Connection, invoke: Invoke) -> list[bytes]:
        try:
            return self._perform(connection, reception.complete(connection, invoke, self._outcome(invoke)))
        except Exception as error:  # what the operation gave cannot be sent
            fault = Fault(error, invoke.request_id)
            return self._perform(connection, [fault, *reception.fail(connection, invoke)])

    def _outcome(self, invoke: Invoke) -> Result | JsonValue | ToolError:
        """What the operation gave. One that breaks down is logged, and told in the tool's own words."""
        started = time.perf_counter()
        try:
            return self._operation(invoke.tool)(**invoke.arguments)
        except ToolError as error:
            return error
        except Exception as error:
            self._fault(Fault(error, invoke.request_id))
            return ToolError(invoke.tool.get("failure", "tool_failed"))
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self._trace("timing", invoke.request_id, {"operation": invoke.tool["provider"], "ms": took})

    def _operation(self, tool: Tool) -> Operation:
        operation = self.operations.get(tool["name"])
        if operation is None:
            provider, _, name = tool["provider"].partition(".")
            if provider not in self.providers:
                self.providers[provider] = registry.open_provider(provider, {})
            operation = self.operations[tool["name"]] = self.providers[provider].operation(name, tool)
        return operation

    def _trace(self, kind: str, request_id: Id | None, value: JsonValue) -> None:
        if self.log.level == "debug":
            self.log.write("trace", request_id, kind=kind, value=message.compact(value))

    def _trace_out(self, sent: JsonValue) -> None:
        if self.log.level == "debug":
            for response in sent if isinstance(sent, list) else [sent]:
                if isinstance(response, dict):
                    ours = {key: _shortened(part) if key == "id" else part for key, part in response.items()}
                    self._trace("message_out", message.readable_id(response), ours)

    def _fault(self, fault: Fault) -> None:
        import traceback  # only a fault pays for it

        for line in "".join(traceback.format_exception(fault.error)).splitlines():
            self.log.write("failed", fault.request_id, line=line)


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
