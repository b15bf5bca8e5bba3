"""``tmkb serve`` over HTTP or a Unix domain socket: sockets, tokens and worker processes."""

from __future__ import annotations

import argparse
import os
import re
import sys
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmkb.cli import replicas
from tmkb.errors import Problem, SpecError
from tmkb.server import log
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server
from tmkb.transport.guard import LOOPBACK, Guard

if TYPE_CHECKING:
    from tmkb.access.access import Access
    from tmkb.server.reload import Reloader

_DIGEST = re.compile(r"[0-9a-f]{64}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the HTTP options of ``tmkb serve``."""
    http = parser.add_argument_group("HTTP", "without --http or --uds the server uses stdin and stdout")
    address = http.add_mutually_exclusive_group()
    address.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP at http://HOST:PORT/mcp")
    address.add_argument("--uds", metavar="PATH", help="serve Streamable HTTP on a Unix domain socket")
    http.add_argument("--allow-remote", action="store_true", help=argparse.SUPPRESS)  # had to be given with tokens
    http.add_argument(
        "--insecure", action="store_true", help="serve everyone who can reach the address, without authentication"
    )
    http.add_argument(
        "--allow-host", action="append", metavar="HOST", help="another host name of this server (repeatable)"
    )
    http.add_argument(
        "--allow-origin",
        action="append",
        type=_origin,
        metavar="ORIGIN",
        help="an origin of web pages that may call the server, as https://HOST (repeatable)",
    )
    http.add_argument(
        "--auth-tokens",
        metavar="FILE",
        help="a file with the SHA-256 of each valid token and its roles, one per line; see `tmkb token`",
    )
    http.add_argument(
        "--access", metavar="FILE", help="who may use what, and whose tokens; see `tmkb schema formats access`"
    )
    replicas.configure(http)


def requested(args: argparse.Namespace) -> bool:
    """Return whether the options select HTTP or a Unix domain socket."""
    return args.http is not None or args.uds is not None or _first(args) is not None


def _first(args: argparse.Namespace) -> str | None:
    """Return the first option that requires HTTP; None if there is none."""
    names = ("allow_remote", "insecure", "allow_host", "allow_origin", "auth_tokens", "access", "cluster_address")
    used = [name for name in names if getattr(args, name)] + ["workers"] * (args.workers != 1)
    return f"--{used[0].replace('_', '-')}" if used else None


def _origin(text: str) -> str:
    parts = urllib.parse.urlsplit(text)
    if not parts.netloc or text != f"{parts.scheme}://{parts.netloc}":
        raise argparse.ArgumentTypeError(f"'{text}' is not an origin. Write SCHEME://HOST or SCHEME://HOST:PORT")
    return text


def listen(
    args: argparse.Namespace,
    server: Server,
    output: log.Log,
    keys: Sequence[bytes],
    updates: Callable[[Runtime], Reloader | None] = lambda _: None,
) -> int:
    """Serve until a signal arrives. ``updates`` returns the reloads of a runtime. Raises SpecError."""
    _require_modules()
    _check(args)
    from tmkb.transport import listener, sockets

    guard, remote = _guard(args, server, output), _authenticates(args) or args.insecure
    others = replicas.Replicas(args, server, remote, bool(keys))
    bound, address = sockets.bind(args.http, args.uds, remote)
    server.announce(output, address)
    output.flush()
    keys = keys or [os.urandom(32)]

    def work(number: int) -> None:
        runtime = server.runtime(output, keys)
        news = updates(runtime)
        try:
            application, inner = others.application(runtime, guard, news, number)
            listener.serve(application, bound, *inner)
        finally:
            if news is not None:
                news.close()

    try:
        if sys.platform == "win32" or args.workers == 1:
            work(1)
            return 0
        from tmkb.transport import workers

        return workers.run(args.workers, work)
    finally:
        others.close()


def _require_modules() -> None:
    """Raise SpecError if a module of the extra ``http`` is not installed."""
    try:
        import tmkb.transport.listener  # noqa: F401 # checks only
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing("--http", "http", error.name)]) from error


def _check(args: argparse.Namespace) -> None:
    """Raise SpecError for options that exclude each other, or need another."""
    if args.http is None and args.uds is None:
        raise SpecError([Problem.of_argument("http_only", str(_first(args)))])
    if args.workers < 1 or (args.workers > 1 and sys.platform == "win32"):
        raise SpecError([Problem.of_argument("bad_workers", "--workers", count=args.workers)])


def _authenticates(args: argparse.Namespace) -> bool:
    """Return whether clients have to authenticate."""
    return bool(args.auth_tokens or args.access)


def _guard(args: argparse.Namespace, server: Server, output: log.Log) -> Guard:
    """Read the files that the options name, and return the access control. Raises SpecError."""
    access = _access(args.access, server, output) if args.access else None
    tokens = _tokens(args.auth_tokens, access) if args.auth_tokens else {}
    return Guard([*LOOPBACK, *(args.allow_host or [])], args.allow_origin or [], tokens, access)


def _access(file: str, server: Server, output: log.Log) -> Access:
    """Return the decisions of an access file. Raises SpecError."""
    from tmkb.access import access, policy

    source = policy.read(file)
    source.check(server.spec)

    def report(line: str, **fields: object) -> None:
        output.write(line, **fields)
        output.flush()

    try:
        return access.Access(source, server.spec["server"]["limits"], report)
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing("--access", "auth", error.name)]) from error


def _tokens(file: str, access: Access | None) -> dict[str, list[str]]:
    """Return the digests in ``file`` with their roles; lines that start with # are comments. Raises SpecError."""
    try:
        with open(file, encoding="utf-8") as lines:
            entries = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SpecError([Problem("unreadable", file, reason=reason)]) from error
    lines_with_roles = [(number, line.split()) for number, line in entries if line and not line.startswith("#")]
    digests = [(number, digest.lower(), roles) for number, (digest, *roles) in lines_with_roles]
    wrong = [Problem("not_a_digest", file, number, 1) for number, digest, _ in digests if not _DIGEST.fullmatch(digest)]
    for number, _, roles in digests:
        if access is not None:
            wrong += access.policy.check_roles(roles, file, number)
        elif roles:
            wrong.append(Problem("roles_need_access", file, number, 1))
    if wrong or not digests:
        raise SpecError(wrong or [Problem("empty", file)])
    if sys.platform != "win32" and os.stat(file).st_mode & 0o022:
        sys.stderr.write(f"{file}: Others may write to this file, and let themselves in.\n")
    return {digest: roles for _, digest, roles in digests}
