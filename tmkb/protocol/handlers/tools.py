"""tools/list and tools/call. Specification: Server Features / Tools."""

from __future__ import annotations

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import coercion, messages, refusal, results, validation
from tmkb.protocol.effects import Counted, Invoke, Log
from tmkb.protocol.handlers import listing
from tmkb.providers.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Request
    from tmkb.protocol.refusal import Failure
    from tmkb.protocol.validation import Violations
    from tmkb.schema.model import ErrorTemplate, Revision, Spec, TaskSupport, Tool
    from tmkb.schema.values import JsonObject, JsonValue


_LONGEST = 1000  # characters of all arguments together; longer questions are not asked twice


def list_tools(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The tools, in the order of their names."""
    tools = connection.spec["tools"]
    listed = listing.answer(
        connection, revision, request, "tools", "tools_result", lambda: map(_listed, tools.values())
    )
    return [*connection.trace("tools_discovered", request.id, {"count": len(tools), "tools": list(tools)}), *listed]


def call_tool(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Judge the arguments; hand them to the tool's operation, or tell the caller all that is wrong with them."""
    name, given = request.params["name"], request.params.get("arguments", {})
    assert isinstance(name, str) and isinstance(given, dict)  # the method's params schema has seen to it
    tool = connection.spec["tools"].get(name)
    if tool is None:
        return connection.refuse_tool(request.id, revision, ToolError("unknown_tool", tool=name))
    question = _question(tool, revision, given) if "keep" in tool and not connection.traced else None
    if question is not None and (kept := connection.kept.get(name, {}).get(question)) is not None:
        line, fields, result = kept
        return [Counted(name, False), Log(line, request.id, fields), *connection.respond(request.id, result)]
    arguments, failures = judge(tool, given, connection.spec, revision["errors"])
    if failures:
        return [Counted(name, True), *connection.refuse_call(request.id, revision, failures)]
    effects = connection.invoke(request, revision, tool, arguments, (_finish, _refuse))
    for invoke in effects:
        assert isinstance(invoke, Invoke)
        invoke.question = question
    if "task" in tool and "tasks" in revision and connection.extends(revision["tasks"]):
        _make_task(effects, tool["task"], revision["tasks"])
    return effects


def judge(
    tool: Tool, given: JsonObject, spec: Spec, errors: Mapping[str, ErrorTemplate]
) -> tuple[JsonObject, list[Failure]]:
    """The arguments as the operation gets them, and everything that is wrong with them."""
    arguments = coercion.read(given, tool.get("read", {}))
    schema: Any = tool["input"]
    found = validation.violations(schema, arguments, spec, "arguments")
    defaults = {
        name: part["default"]
        for name, part in schema.get("properties", {}).items()
        if name not in arguments and isinstance(part, dict) and "default" in part
    }
    return {**defaults, **arguments}, validation.failures(found, "tool", tool.get("errors", {}), errors)


def _question(tool: Tool, revision: Revision, given: JsonObject) -> tuple[object, ...] | None:
    """What an answer is kept by; None where the arguments are no short texts."""
    values = given.values()
    if sum([len(value) if isinstance(value, str) else _LONGEST for value in values]) >= _LONGEST:
        return None
    return (revision["revision"], *given.items())


def _make_task(effects: list[Effect], task: TaskSupport, extension: str) -> None:
    """Let the call go on after it was answered. Raises ProtocolError where a client that has to cannot follow."""
    for invoke in effects:
        assert isinstance(invoke, Invoke)
        try:
            refusal.need_extension(invoke.capabilities, extension)
            invoke.detaches = task.get("begins", "at_start")
        except ProtocolError:
            if task["support"] == "required":
                raise


def _listed(tool: Tool) -> dict[str, Any]:
    schemas = {"inputSchema": tool["input"]} | ({"outputSchema": tool["output"]} if "output" in tool else {})
    return listing.identity(tool) | schemas


def _finish(connection: Connection, invoke: Invoke, outcome: Result | JsonValue) -> list[Effect]:
    """The response with what the operation gave; a tool that promises a form is held to it."""
    tool: Any = invoke.definition
    result: Any = results.succeeded(connection.spec["server"], tool, outcome)
    if "output" in tool and not result["isError"]:
        structured = result.get("structuredContent")
        if found := validation.violations(tool["output"], structured, connection.spec, "structuredContent"):
            return _misshapen(connection, invoke, found)
    encoded = connection.encoded(invoke.revision, "call_result", result)
    traced = connection.trace("result", invoke.request_id, messages.decode(encoded)) if connection.traced else []
    facts = {"tool": tool["name"], **(outcome.facts if isinstance(outcome, Result) else {})}
    line = tool["log"]
    fields: dict[str, object] = {name: facts[name] for name in line.get("fields", [])}
    if invoke.question is not None:
        kept = connection.kept.setdefault(tool["name"], {})  # of the edition that the call began with
        kept[invoke.question] = (line, fields, encoded)
        if len(kept) > tool["keep"]:
            del kept[next(iter(kept))]
    return [*traced, Log(line, invoke.request_id, fields), *connection.respond(invoke.request_id, encoded)]


def _misshapen(connection: Connection, invoke: Invoke, found: Violations) -> list[Effect]:
    """The response that a tool has broken its promise; what it broke is for the log alone."""
    tool: Any = invoke.definition
    errors = invoke.revision["errors"]
    noted = [
        connection.note("bad_output", invoke.request_id, tool=tool["name"], violation=failure.sentence)
        for failure in validation.failures(found, "tool", {}, errors)
    ]
    error = ToolError(tool.get("failure", "tool_failed"), ref=connection.reference())
    return [*noted, *connection.refuse_tool(invoke.request_id, invoke.revision, error)]


def _refuse(connection: Connection, invoke: Invoke, failures: list[Failure]) -> list[Effect]:
    return connection.refuse_call(invoke.request_id, invoke.revision, failures)
