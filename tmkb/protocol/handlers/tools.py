"""tools/list and tools/call. Specification: Server Features / Tools."""

from __future__ import annotations

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import arguments, messages, negotiation, outbound
from tmkb.protocol.effects import Log, RecordUsage
from tmkb.protocol.handlers import listing
from tmkb.providers.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.arguments import Violations
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.outbound import Failure
    from tmkb.protocol.requests import Exchange
    from tmkb.schema.model import Revision, TaskSupport, Tool
    from tmkb.schema.values import JsonObject, JsonValue

TOOL_ERROR = "tool_error"  # the error of a result with `isError` that an operation returned
_MAX_KEY_CHARACTERS = 1000  # of all arguments; results of longer arguments are not cached


class _ListTools:
    """List the tools, in the order of their names."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        tools = listing.permitted(exchange, "tools")
        value: Any = {"count": len(tools), "tools": [tool["name"] for tool in tools]}
        page = listing.send_page(exchange, "tools", "tools_result", lambda: map(_entry, tools))
        return [*outbound.trace(exchange.connection, "tools_discovered", exchange.id, value), *page]


class _CallTool:
    """Run the tool's operation, or return every failure of the arguments."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        name, sent = exchange.params["name"], exchange.params.get("arguments", {})
        assert isinstance(name, str) and isinstance(sent, dict)  # valid by the schema of the method
        revision = exchange.revision
        tool = exchange.spec["tools"].get(name)
        if tool is None:
            return outbound.send_tool_error(exchange, ToolError("unknown_tool", tool=name))
        if "cache_results" in tool and not exchange.connection.traced:
            exchange.cache_key = _cache_key(revision, sent)
            cached = exchange.snapshot.result_cache.get(name, {}).get(exchange.cache_key)
            if cached is not None:
                line, fields, result, exchange.facts = cached
                exchange.cached = True
                return [
                    RecordUsage(name, False, exchange.connection.principal),
                    Log(line, exchange.id, fields),
                    *outbound.send_encoded(exchange, result),
                ]
        checked, failures = arguments.check(tool, sent, exchange.spec, revision["errors"])
        if failures:
            return [
                RecordUsage(name, True, exchange.connection.principal),
                *outbound.send_tool_failures(exchange, failures),
            ]
        effects = exchange.invoke(tool, checked)
        extension = revision.get("tasks")
        if extension and "task" in tool:
            declared = exchange.spec["server"]["capabilities"]
            if negotiation.declares_extension(declared, extension):
                _allow_task(exchange, tool["task"], extension)
        return effects

    def complete(self, exchange: Exchange, outcome: Result | JsonValue) -> list[Effect]:
        tool: Any = exchange.definition
        result: Any = outbound.tool_result(exchange.spec["server"], tool, outcome)
        if "output" in tool and not result["isError"]:
            structured = result.get("structuredContent")
            if invalid := arguments.violations(tool["output"], structured, exchange.spec, "structuredContent"):
                return _invalid_output(exchange, invalid)
        encoded = outbound.encode_result(exchange, "call_result", result)
        exchange.facts = {"tool": tool["name"], **((isinstance(outcome, Result) and outcome.facts) or {})}
        exchange.error = TOOL_ERROR if result["isError"] else ""
        line = tool["log"]
        fields: dict[str, object] = {name: exchange.facts[name] for name in line.get("fields", [])}
        if exchange.cache_key is not None:
            cache = exchange.snapshot.result_cache.setdefault(tool["name"], {})
            cache[exchange.cache_key] = (line, fields, encoded, exchange.facts)
            if len(cache) > tool["cache_results"]:
                del cache[next(iter(cache))]
        effects: list[Effect] = [Log(line, exchange.id, fields), *outbound.send_encoded(exchange, encoded)]
        if not exchange.connection.traced:
            return effects
        return [*outbound.trace(exchange.connection, "result", exchange.id, messages.decode(encoded)), *effects]

    def refuse(self, exchange: Exchange, failures: list[Failure]) -> list[Effect]:
        return outbound.send_tool_failures(exchange, failures)


list_tools, call_tool = _ListTools(), _CallTool()


def _cache_key(revision: Revision, sent: JsonObject) -> tuple[object, ...] | None:
    """Return the key of the result in the cache; None unless all arguments are short strings."""
    length = 0
    for value in sent.values():
        length += len(value) if isinstance(value, str) else _MAX_KEY_CHARACTERS
    return (revision["revision"], *sent.items()) if length < _MAX_KEY_CHARACTERS else None


def _allow_task(exchange: Exchange, task: TaskSupport, extension: str) -> None:
    """Let the call become a task. Raises ProtocolError if the tool requires a task that the client cannot follow."""
    try:
        negotiation.require_extension(exchange.capabilities, extension)
        exchange.detaches = task.get("begins", "at_start")
    except ProtocolError:
        if task["support"] == "required":
            raise


def _entry(tool: Tool) -> dict[str, Any]:
    schemas = {"inputSchema": tool["input"]} | ({"outputSchema": tool["output"]} if "output" in tool else {})
    return listing.entry(tool) | schemas


def _invalid_output(exchange: Exchange, invalid: Violations) -> list[Effect]:
    """Return the failure of a tool whose output breaks its schema. Only the log contains the violations."""
    tool: Any = exchange.definition
    ref = exchange.connection.reference()
    logged = [
        outbound.log_line(
            exchange.spec, "bad_output", exchange.id, tool=tool["name"], violation=failure.sentence, ref=ref
        )
        for failure in arguments.failures(invalid, "tool", {}, exchange.revision["errors"])
    ]
    error = ToolError(tool.get("on_exception", "tool_failed"), ref=ref)
    return [*logged, *outbound.send_tool_error(exchange, error)]
