"""``client.py COMMAND… | URL``: the official Python client lists the tools, calls them, and prints what it got."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(server, *arguments):
    """Connect with a handshake, list, and call."""
    parameters = StdioServerParameters(command=server, args=arguments, env=dict(os.environ))
    transport = streamable_http_client(server) if server.startswith("http") else stdio_client(parameters)
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        print(*names)
        for name, value in (("forecast", {"city": "Oslo"}), ("login", {"password": "correct horse battery staple"})):
            if name in names:
                print((await session.call_tool(name, value)).content[0].text)


asyncio.run(main(*sys.argv[1:]))
