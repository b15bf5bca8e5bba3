"""``sdk.py COMMAND…``: the official Python client, of whichever release runs this, against a server over stdio."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command, *arguments):
    """Initialize, list, call, call badly; say what came of it."""
    parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        good = await session.call_tool("tmkb_query", {"context": "background job processing"})
        bad = await session.call_tool("tmkb_query", {"context": "x", "language": "java"})
        await session.send_ping()
    print([tool.name for tool in tools.tools])
    print(good.content[0].text)
    print(bad.content[0].text)


asyncio.run(main(*sys.argv[1:]))
