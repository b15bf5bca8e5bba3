"""tools/list and tools/call. Specification: Server Features / Tools."""

from __future__ import annotations

from tmkb.engine import message, reading, shape, validation
from tmkb.engine.effects import Invoke
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import ErrorTemplate, Revision, Tool
    from tmkb.values import JsonObject


def list_tools(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Every tool, in the order of their names, on one page."""
    if "cursor" in request.params:
        raise ProtocolError("unknown_cursor")
    tools = connection.spec["tools"]
    place = (request.method, revision["revision"])
    if place not in connection.once:
        connection.once[place] = message.encode({"tools": [_listed(tool, revision) for tool in tools.values()]})
    traced = connection.trace("tools_discovered", request.id, {"count": len(tools), "tools": list(tools)})
    return [*traced, *connection.respond(request.id, connection.once[place])]


def call_tool(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Judge the arguments; hand them to the tool's operation, or tell the caller all that is wrong with them."""
    name, given = request.params["name"], request.params.get("arguments", {})
    assert isinstance(name, str) and isinstance(given, dict)  # the method's params schema has seen to it
    tool = connection.spec["tools"].get(name)
    if tool is None:
        raise ProtocolError("unknown_tool", tool=name)
    arguments, sentences = judge(tool, given, connection.spec["types"], revision["errors"])
    if sentences:
        return connection.refuse_call(request.id, sentences)
    return [Invoke(request.id, tool, arguments, revision)]


def _listed(tool: Tool, revision: Revision) -> JsonObject:
    fields = {"name": tool["name"], "description": tool["description"], "inputSchema": tool["input"]}
    return shape.fit(revision["tool"], fields)


def judge(
    tool: Tool, given: JsonObject, types: Mapping[str, list[str]], errors: Mapping[str, ErrorTemplate]
) -> tuple[JsonObject, list[str]]:
    """The arguments as the operation gets them, and a sentence for everything that is wrong with them."""
    arguments = reading.read(given, tool.get("read", {}))
    found = validation.violations(tool["input"], arguments, types)
    properties = tool["input"].get("properties", {})
    assert isinstance(properties, dict)
    defaults = {name: s["default"] for name, s in properties.items() if isinstance(s, dict) and "default" in s}
    return {**defaults, **arguments}, validation.sentences(found, "tool", tool.get("errors", {}), errors)
