"""Peer: the high-level server of the Python SDK over HTTP, on the port given as argument."""

import pathlib
import sys
from typing import Literal

from mcp.server.mcpserver import MCPServer

ANSWER = pathlib.Path(__file__).with_name("answer.json").read_text()
server = MCPServer("peer", log_level="ERROR")


@server.tool(structured_output=False)
def tmkb_query(context: str, language: Literal["python"] = "python") -> str:
    """Which threats matter for this?"""
    return ANSWER


server.run("streamable-http", port=int(sys.argv[1]), json_response=True)
