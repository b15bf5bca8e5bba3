"""The official Python client drives a real server."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PARAMETERS = StdioServerParameters(command=sys.executable, args=["-m", "tmkb", "serve"])


async def talk():
    async with stdio_client(PARAMETERS) as (read, write), ClientSession(read, write) as session:
        initialized = await session.initialize()
        tools = await session.list_tools()
        good = await session.call_tool("tmkb_query", {"context": "background job processing"})
        bad = await session.call_tool("tmkb_query", {"context": "x", "language": "java"})
        await session.send_ping()
    return initialized, tools, good, bad


def test_initialize_list_tools_call_tool():
    initialized, tools, good, bad = asyncio.run(talk())

    assert (initialized.server_info.name, initialized.protocol_version) == ("tmkb", "2025-11-25")
    assert [tool.name for tool in tools.tools] == ["tmkb_query"]
    assert json.loads(good.content[0].text)["patterns"][0]["id"] == "TMKB-AUTH-001"
    assert (bad.is_error, bad.content[0].text) == (True, "Invalid language 'java'. Supported languages: python")
