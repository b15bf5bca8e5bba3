"""``tmkb call``: call a tool of any MCP server.

Exit status: 0 success; 1 the tool reports an error, the server fails, or there is no such tool; 2 the arguments are
wrong, or the server cannot be reached.
"""

from __future__ import annotations

import argparse
from typing import Any

from tmkb.cli import arguments, connection, contents, output, tools
from tmkb.conformance.client import Client


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("tool", metavar="TOOL", help="the name of the tool")
    parser.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help=arguments.HELP)
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the result of the call."""
    return connection.run(args, _call)


def _call(args: argparse.Namespace, client: Client) -> int:
    tool = tools.find(client, args.tool)
    if tool is None:
        return 1
    result: Any = connection.use(args, client, "call_tool", args.tool, tools.schema(tool, "inputSchema"))
    if result is None:
        return 2
    output.write(args, result, contents.blocks(result.get("content"), result.get("structuredContent")))
    if result.get("isError") is True:
        output.fail(f"{args.tool} reports an error.")
        return 1
    return 0
