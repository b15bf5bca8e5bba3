"""``tmkb tools``: list the tools of any MCP server, or describe one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tmkb.cli import arguments, connection, output
from tmkb.cli.layout import Line, indented, table, text
from tmkb.conformance.client import Client
from tmkb.schema.values import JsonObject


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="describe this tool")
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the tools. Return 1 if there is no tool of this name."""
    return connection.run(args, _tools)


def _tools(args: argparse.Namespace, client: Client) -> int:
    if args.name is not None:
        tool = find(client, args.name)
        if tool is None:
            return 1
        output.write(args, tool, _page(tool))
        return 0
    tools = client.tools()
    rows = [(connection.name(each), connection.first_line(each)) for each in tools]
    output.write(args, tools, table(("tool", "description"), rows) if rows else "This server has no tools.")
    return 0


def find(client: Client, name: str) -> JsonObject | None:
    """Return the tool ``name``; None, with a message on stderr, if there is none."""
    return connection.find(client.tools(), "name", name, "tool")


def schema(tool: JsonObject, member: str) -> JsonObject:
    """Return the JSON Schema in ``member`` of a tool; an empty one if it is none."""
    value = tool.get(member)
    return value if isinstance(value, dict) else {}


def _page(tool: Any) -> list[Line]:
    lines = text(
        (connection.name(tool), "bold"), *([f"  {tool['title']}"] if isinstance(tool.get("title"), str) else [])
    )
    lines += text(tool["description"]) if isinstance(tool.get("description"), str) else []
    for title, member in (("Arguments", "inputSchema"), ("Structured result", "outputSchema")):
        if described := arguments.described(schema(tool, member)):
            lines += [*text(), *text((title, "bold")), *indented(arguments.lines(described))]
    if annotations := tool.get("annotations"):
        lines += [*text(), *text(("Annotations", "bold")), *indented(text(json.dumps(annotations)))]
    return lines
