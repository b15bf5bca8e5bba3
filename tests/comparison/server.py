"""``server.py [WITHOUT…]``: a small server of the official Python SDK over stdio, without the tools that are named."""

import sys

from mcp.server import MCPServer

server = MCPServer("weather")
TOKEN = "ghp_" + "s3cretT0kenOfTheTest" + "0123456789abcdef"  # in the form of a token of GitHub, and none


def forecast(city: str) -> str:
    """Say what the weather will be."""
    return f"Sunny in {city}"


def tide(harbour: str) -> str:
    """Say when the water is high."""
    return f"Noon in {harbour}"


def login(password: str) -> str:
    """Return a token."""
    return f"Your token is {TOKEN}" if password else "No"


for tool in (forecast, tide, login):
    if tool.__name__ not in sys.argv[1:]:
        server.add_tool(tool)
server.run()
