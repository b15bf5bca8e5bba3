"""``tmkb resources``: list the resources of any MCP server, or read one."""

from __future__ import annotations

import argparse
from typing import Any

from tmkb.cli import connection, contents, output
from tmkb.cli.layout import table, text
from tmkb.conformance.client import Client, ClientError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("uri", nargs="?", metavar="URI", help="read this resource")
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the resources, or the contents of one."""
    return connection.run(args, _list if args.uri is None else _read)


def _list(args: argparse.Namespace, client: Client) -> int:
    resources, templates = client.resources(), client.templates()
    rows = [(connection.name(each, "uri"), connection.first_line(each)) for each in resources]
    rows += [(connection.name(each, "uriTemplate"), connection.first_line(each)) for each in templates]
    value = {"resources": resources, "resourceTemplates": templates}
    output.write(args, value, table(("resource", "description"), rows) if rows else "This server has no resources.")
    return 0


def _read(args: argparse.Namespace, client: Client) -> int:
    try:
        result: Any = connection.complete(args, client, "read_resource", {"uri": args.uri})
    except ClientError as error:
        if error.code is not None and (hint := _nearest(client, args.uri)):
            raise ClientError(f"{error.message}. {hint}", error.code, error.data) from error
        raise
    found = result.get("contents")
    listed = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    lines = [line for each in listed for line in contents.resource(each)]
    output.write(args, result, lines or text(("No contents.", "dim")))
    return 0


def _nearest(client: Client, uri: str) -> str:
    try:
        known = [str(each.get("uri")) for each in client.resources()]
    except ClientError:
        return ""
    return output.did_you_mean(uri, known)
