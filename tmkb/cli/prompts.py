"""``tmkb prompts``: list the prompts of any MCP server, or get one."""

from __future__ import annotations

import argparse
from typing import Any

from tmkb.cli import arguments, connection, contents, output
from tmkb.cli.layout import Line, indented, table, text
from tmkb.conformance.client import Client
from tmkb.schema import hidden
from tmkb.schema.values import JsonObject


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="get this prompt")
    parser.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help=arguments.HELP)
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the prompts, or the messages of one. Return 1 if there is no prompt of this name."""
    return connection.run(args, _prompts)


def _prompts(args: argparse.Namespace, client: Client) -> int:
    prompts = client.prompts()
    if args.name is None:
        rows = [(connection.name(each), _arguments(each), connection.first_line(each)) for each in prompts]
        shown = table(("prompt", "arguments", "description"), rows) if rows else "This server has no prompts."
        output.write(args, prompts, shown)
        return 0
    prompt = connection.find(prompts, "name", args.name, "prompt")
    if prompt is None:
        return 1
    result = connection.use(args, client, "get_prompt", args.name, _schema(prompt))
    if result is None:
        return 2
    output.write(args, result, _messages(result))
    return 0


def _schema(prompt: Any) -> JsonObject:
    """Return the JSON Schema of a prompt's arguments, which are all strings."""
    arguments_ = prompt.get("arguments")
    listed = [each for each in arguments_ if isinstance(each, dict)] if isinstance(arguments_, list) else []
    return {
        "properties": {str(each.get("name")): {**each, "type": "string"} for each in listed},
        "required": [str(each.get("name")) for each in listed if each.get("required") is True],
    }


def _arguments(prompt: JsonObject) -> str:
    described = arguments.described(_schema(prompt))
    return hidden.line(" ".join(each.name if each.required else f"[{each.name}]" for each in described))


def _messages(result: Any) -> list[Line]:
    messages = result.get("messages")
    lines: list[Line] = []
    for each in messages if isinstance(messages, list) else ():
        if isinstance(each, dict) and isinstance(each.get("content"), dict):
            lines += [*text((f"{each.get('role')}:", "bold")), *indented(contents.block(each["content"]))]
    return lines or text(("No messages.", "dim"))
