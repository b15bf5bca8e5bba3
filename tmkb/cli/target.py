"""The options that choose another server, ``--command`` and ``--url``, and connections to it."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmkb.conformance import targets
from tmkb.errors import DocumentError
from tmkb.schema.model import Spec

if TYPE_CHECKING:
    from tmkb.conformance.http import Http


def configure(parser: argparse.ArgumentParser) -> None:
    """Add ``--command``, ``--url`` and the options of a connection."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--command", type=words, metavar="CMD", help="start this server, which speaks over stdio")
    chosen.add_argument("--url", type=url, metavar="URL", help="the URL of a running server")
    configure_connection(parser)


def configure_connection(parser: argparse.ArgumentParser) -> None:
    """Add ``--header`` and ``--timeout``."""
    parser.add_argument(
        "--header",
        type=header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="over HTTP: send this header with each request (repeatable)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=targets.TIMEOUT,
        metavar="SECONDS",
        help="timeout for one turn, and for the server to exit (default: %(default)g)",
    )


def shown(args: argparse.Namespace) -> str:
    """Return the chosen server as the user wrote it."""
    return args.url or shlex.join(args.command)


def http(address: str, spec: Spec, timeout: float, headers: Sequence[tuple[str, str]] = ()) -> Http:
    """Return a connection to the server at ``address``. Raises DocumentError without the extra ``replay``.

    ``spec``: see `tmkb.conformance.http.Http`; ``timeout``: seconds for one turn; ``headers``: of each request.
    """
    require_http()
    from tmkb.conformance.http import Http

    return Http(address, spec, timeout, headers)


def connect(
    command: Sequence[str] | None,
    url: str | None,
    spec: Callable[[], Spec],
    timeout: float,
    headers: Sequence[tuple[str, str]] = (),
) -> targets.Target:
    """Connect for single requests, which observe no silence.

    Args:
        command: the words of a command; or else ``url``, of a running server.
        spec: returns the rules of all revisions; called for a URL only.
        timeout: seconds for one request.
        headers: of each HTTP request.

    Raises:
        DocumentError: without the extra ``replay``, for a URL.
        OSError: if the server cannot be started or reached.
    """
    if command:
        return targets.Command(command, timeout, quiet=0.0)
    connection = http(url or "", spec(), timeout, headers)
    connection.check_connection()
    return connection


def unreachable(server: str, error: OSError) -> str:
    """Return the sentence about a server that cannot be started or reached."""
    return f"Cannot reach {server}: {error.strerror or error}."


def require_http() -> None:
    """Raise DocumentError without the extra ``replay``."""
    try:
        import httpx2  # noqa: F401
    except ImportError as error:
        from tmkb.schema import installation

        raise DocumentError([installation.missing("--url", "replay", error.name)]) from error


def words(text: str) -> list[str]:
    """Split a command into its words as a shell does. Raises argparse.ArgumentTypeError."""
    try:
        if split := shlex.split(text):
            return split
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: {text}") from error
    raise argparse.ArgumentTypeError("the command is empty")


def url(text: str) -> str:
    """Return ``text`` if it is the URL of an HTTP server. Raises argparse.ArgumentTypeError."""
    try:
        parts = urllib.parse.urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    except ValueError:  # brackets that do not close, or a port that is no number
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not the URL of an HTTP server. Write it like http://HOST:PORT/mcp")


def header(text: str) -> tuple[str, str]:
    """Split a header into name and value. Raises argparse.ArgumentTypeError, without the value."""
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise argparse.ArgumentTypeError("write it like 'Authorization: Bearer TOKEN'")
    if not re.fullmatch(r"[\t\x20-\x7e]*", value):
        raise argparse.ArgumentTypeError(f"the value of {name} has characters that a header cannot contain")
    return name, value.strip()


def seconds(text: str) -> float:
    """Read a number of seconds above 0. Raises argparse.ArgumentTypeError."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value
