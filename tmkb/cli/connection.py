"""What the commands for single requests share: their options, a client of the chosen server, and its faults."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any

from tmkb.cli import arguments, output, target
from tmkb.conformance import targets
from tmkb.conformance.client import Client, ClientError
from tmkb.schema import hidden
from tmkb.schema.values import JsonObject, JsonValue
from tmkb.server import log, sources
from tmkb.server.server import DEFAULT_SERVER, Server, protocol

_UNAUTHORIZED = "The server wants to know who you are. Use --header 'Authorization: Bearer TOKEN'."
_MOST_ROUNDS = 10  # of a request that the server wants repeated


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose and open a server."""
    target.configure(parser)
    parser.add_argument(
        "--server", metavar="NAME", help=f"one of our own servers, in this process (default: {DEFAULT_SERVER})"
    )
    parser.add_argument("--revision", metavar="DATE", help="speak this revision (default: the newest in common)")
    parser.add_argument("--verbose", action="store_true", help="print all messages to stderr")
    sources.configure_schemas(parser)
    sources.configure_python(parser)
    output.configure(parser)


def run(args: argparse.Namespace, act: Callable[[argparse.Namespace, Client], int]) -> int:
    """Open a client, call ``act`` with it, and end the server.

    Returns:
        The exit status: that of ``act``; 1 if the server fails or answers with an error; 2 if it cannot be reached.
    """
    if args.server and (args.command or args.url):
        output.fail("--server names one of our own servers; leave out --command and --url.")
        return 2
    try:
        client = _client(args)
    except OSError as error:
        output.fail(target.unreachable(target.shown(args), error))
        return 2
    try:
        client.open()
        return act(args, client)
    except RecursionError:
        output.fail("What the server sent is nested too deeply to show.")
        return 1
    except ClientError as error:
        clear()
        notes = client.close() if error.code is None else []
        hint = [_UNAUTHORIZED] if args.url and error.code is None and ": 401 " in error.message else []
        output.fail("\n".join([sentence(error), *hint, *notes]))
        return 1
    finally:
        client.close()


def sentence(error: ClientError) -> str:
    """Return the error as a sentence, with its code and data."""
    if error.code is None:
        return error.message
    data = "" if error.data is None else f" {json.dumps(error.data, ensure_ascii=False)}"
    return f"The server answers with the error {error.code}: {error.message}{data}"


def use(args: argparse.Namespace, client: Client, handler: str, name: str, schema: JsonObject) -> JsonObject | None:
    """Send the arguments on the command line to a tool or prompt.

    Args:
        handler: what the method does, as for `Client.method`.
        name: of the tool or prompt.
        schema: the JSON Schema of its arguments.

    Returns:
        The result; None, with a message on stderr, if the arguments are wrong.

    Raises:
        ClientError: as `complete`.
    """
    try:
        values = arguments.read(args.arguments, schema)
    except arguments.ArgumentError as error:
        output.fail(str(error))
        return None
    if lacking := arguments.missing(schema, values):
        arguments.fail_missing(name, lacking)
        return None
    return complete(args, client, handler, {"name": name, "arguments": values})


def complete(args: argparse.Namespace, client: Client, handler: str, params: JsonObject) -> JsonObject:
    """Return the complete result of a request; repeat the request if the server wants only that.

    Specification: Basic / Patterns / Multi Round-Trip Requests.

    Args:
        handler: what the method does, as for `Client.method`.

    Raises:
        ClientError: as `Client.request`; also if the server asks for input.
    """
    method, sent = client.method(handler) or "", params | _following(args)
    result = client.request(method, sent)
    for _ in range(_MOST_ROUNDS):
        if result.get("resultType") != "input_required":
            clear()
            return result
        asked = result.get("inputRequests")
        if isinstance(asked, dict) and asked:
            raise ClientError(" ".join(_declined(each) for each in asked.values()))
        result = client.request(method, sent | {"requestState": result.get("requestState")})
    raise ClientError(f"The server wants {method} repeated again and again.")


def find(entries: Iterable[JsonObject], key: str, name: str, kind: str) -> JsonObject | None:
    """Return the entry whose ``key`` is ``name``; None, with a message on stderr, if there is none.

    ``kind``: what the entries are, for the message.
    """
    named = {str(each.get(key)): each for each in entries}
    if name not in named:
        otherwise = f"Known: {', '.join(named)}." if named else f"This server has no {kind}s."
        output.fail(f"There is no {kind} {name or repr(name)}. {output.did_you_mean(name, named, otherwise)}")
    return named.get(name)


def first_line(entry: JsonObject) -> str:
    """Return the first line of an entry's description, else its title or name."""
    texts = (entry.get(key) for key in ("description", "title", "name"))
    return next((each.strip().splitlines()[0] for each in texts if isinstance(each, str) and each.strip()), "")


def name(entry: JsonObject, key: str = "name") -> str:
    """Return the name of an entry as one line, for a table."""
    return hidden.line(str(entry.get(key)))


def _client(args: argparse.Namespace) -> Client:
    """Connect to the chosen server. Raises OSError if it cannot be started or reached."""
    connection: targets.Target
    if args.command or args.url:
        spec = protocol(args.schemas)
        connection = target.connect(args.command, args.url, lambda: spec, args.timeout, args.header)
    else:
        server = Server.load(args.server or DEFAULT_SERVER, schemas=args.schemas, allow_python=args.allow_python)
        output.warn(server)
        spec = server.spec
        silent = log.Log(spec["server"]["log"], fd=os.open(os.devnull, os.O_WRONLY))
        connection = targets.InProcess(server.runtime(silent), args.timeout)
    client = Client(connection, spec, args.revision)
    client.declined = lambda question: output.fail(_declined(question))
    connection.on_receive = lambda value: _hear(args, value)
    if args.verbose:
        client.on_send = lambda value: _show("→", value)
    return client


def _following(args: argparse.Namespace) -> JsonObject:
    """Return params that ask for progress, if stderr is a terminal."""
    return {"_meta": {"progressToken": "progress"}} if sys.stderr.isatty() and not args.verbose else {}


def _hear(args: argparse.Namespace, value: JsonValue) -> None:
    """Show what arrives: every message with --verbose, else progress on a terminal."""
    if args.verbose:
        _show("←", value)
    params: Any = value.get("params") if isinstance(value, dict) else None
    if isinstance(params, dict) and "progressToken" in params and sys.stderr.isatty() and not args.verbose:
        total = f" of {params['total']}" if "total" in params else ""
        width = shutil.get_terminal_size().columns - 1
        line = hidden.line(f"{params.get('progress')}{total} {params.get('message', '')}")[:width]
        print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Remove the line with progress from a terminal."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)


def _declined(question: JsonValue) -> str:
    """Return the sentence about a request of the server, with its words to the user."""
    asked: Any = question if isinstance(question, dict) else {}
    params = asked.get("params")
    words = params.get("message") if isinstance(params, dict) else None
    quoted = f" ({words})" if isinstance(words, str) else ""
    return f"The server asked for {asked.get('method')}{quoted}; declined, because this command answers no questions."


def _show(arrow: str, value: JsonValue) -> None:
    print(
        hidden.line(f"{arrow} {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"),
        file=sys.stderr,
        flush=True,
    )
