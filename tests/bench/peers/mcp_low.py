"""Peer: the low-level server of the Python SDK, its schema written by hand."""

import pathlib

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ANSWER = pathlib.Path(__file__).with_name("answer.json").read_text()
INPUT = {
    "type": "object",
    "properties": {"context": {"type": "string", "minLength": 1}, "language": {"type": "string", "enum": ["python"]}},
    "required": ["context"],
}
TOOL = types.Tool(name="tmkb_query", description="Which threats matter for this?", input_schema=INPUT)


async def list_tools(context, params):
    """The one tool."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(context, params):
    """The canned answer."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=ANSWER)])


async def main():
    """Serve one client."""
    server = Server("peer", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
