"""Peer: fastmcp."""

import pathlib
from typing import Literal

from fastmcp import FastMCP

ANSWER = pathlib.Path(__file__).with_name("answer.json").read_text()
server = FastMCP("peer", version="1.0")


@server.tool(output_schema=None)
def tmkb_query(context: str, language: Literal["python"] = "python") -> str:
    """Which threats matter for this?"""
    return ANSWER


server.run(transport="stdio", show_banner=False)
