"""``tmkb serve`` over HTTP or a Unix domain socket: sockets, tokens and worker processes."""

from __future__ import annotations

import argparse
import os
import re
import socket
import stat
import sys
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING

from tmkb.errors import Problem, SpecError
from tmkb.server import log
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server
from tmkb.transport.guard import is_loopback

if TYPE_CHECKING:
    from tmkb.server.reload import Reloader

_DIGEST = re.compile(r"[0-9a-f]{64}")
_BACKLOG = 1024  # connections that wait to be accepted


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the HTTP options of ``tmkb serve``."""
    http = parser.add_argument_group("HTTP", "without --http or --uds the server uses stdin and stdout")
    address = http.add_mutually_exclusive_group()
    address.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP at http://HOST:PORT/mcp")
    address.add_argument("--uds", metavar="PATH", help="serve Streamable HTTP on a Unix domain socket")
    http.add_argument(
        "--allow-remote", action="store_true", help="listen on an address that is not loopback; needs --auth-tokens"
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
        help="a file with the SHA-256 of each valid token, one per line; see `tmkb token`",
    )
    http.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="number of processes; more than one only for stateless revisions",
    )


def requested(args: argparse.Namespace) -> bool:
    """Return whether the options select HTTP or a Unix domain socket."""
    return args.http is not None or args.uds is not None or _first(args) is not None


def _first(args: argparse.Namespace) -> str | None:
    """Return the first option that requires HTTP; None if there is none."""
    names = ("allow_remote", "allow_host", "allow_origin", "auth_tokens")
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
    key: bytes | None,
    updates: Callable[[Runtime], Reloader | None] = lambda _: None,
) -> int:
    """Serve until a signal arrives. ``updates`` returns the reloads of a runtime. Raises SpecError."""
    try:
        from tmkb.transport import guard, listener
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing("--http", "http", error.name)]) from error

    _refuse_combinations(args)
    hosts = [*guard.LOOPBACK, *(args.allow_host or [])]
    tokens = _tokens(args.auth_tokens) if args.auth_tokens else []
    if args.workers != 1:
        _check_workers(server, args.workers)
    bound, address = bind(args.http, args.uds, args.allow_remote and bool(tokens))
    server.announce(output, address)
    output.flush()
    key = key or os.urandom(32)
    admitted = guard.Guard(hosts, args.allow_origin or [], tokens)

    def work() -> None:
        runtime = server.runtime(output, key, stateless=args.workers != 1)
        news = updates(runtime)
        try:
            listener.serve(runtime, admitted, bound, news)
        finally:
            if news is not None:
                news.close()

    if sys.platform == "win32" or args.workers == 1:
        work()
        return 0
    from tmkb.transport import workers

    return workers.run(args.workers, work)


def _refuse_combinations(args: argparse.Namespace) -> None:
    """Raise SpecError for options that exclude each other, or that need another."""
    if args.http is None and args.uds is None:
        raise SpecError([Problem.of_argument("http_only", str(_first(args)))])
    if args.allow_remote and not args.auth_tokens:
        raise SpecError([Problem.of_argument("tokens_missing", "--allow-remote")])
    if args.watch and args.workers != 1:
        raise SpecError([Problem.of_argument("watch_alone", "--watch")])


def _check_workers(server: Server, workers: int) -> None:
    """Raise SpecError if several processes cannot serve this server."""
    if workers < 1 or sys.platform == "win32":
        raise SpecError([Problem.of_argument("bad_workers", "--workers", count=workers)])
    if not server.spec["negotiation"]["stateless"]:
        name = server.spec["server"]["name"]
        raise SpecError([Problem.of_argument("workers_need_stateless", "--workers", server=name)])


def bind(http: str | None, uds: str | None = None, remote: bool = False) -> tuple[socket.socket, str]:
    """Return a listening socket and its URL for the log. Raises SpecError.

    Args:
        http: HOST:PORT.
        uds: the path of a Unix domain socket instead.
        remote: whether an address that is not loopback is allowed.
    """
    try:
        if uds:
            return _unix(uds), f"{uds}:/mcp"
        host, port = _address(http or "")
        if not is_loopback(host) and not remote:
            raise SpecError([Problem.of_argument("remote_not_allowed", "--http", host=host)])
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = uds or http or ""
        reason = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        raise SpecError([Problem.of_argument("cannot_listen", where, reason=reason)]) from error
    shown = f"[{host}]" if ":" in host else host
    return bound, f"http://{shown}:{bound.getsockname()[1]}/mcp"


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SpecError([Problem.of_argument("bad_address", "--http", text=text)])
    return host.removeprefix("[").removesuffix("]"), int(port)


def _unix(path: str) -> socket.socket:
    """Listen on a socket at ``path`` that only its owner can use.

    A socket without a listener is replaced. Raises OSError if it has a listener, and SpecError if the file is not a
    socket or the system has no Unix domain sockets.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise SpecError([Problem("no_unix_sockets", "--uds")])
    try:
        occupied = not stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        pass
    else:
        if occupied:
            raise SpecError([Problem("not_a_socket", path)])
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(None, "something is listening there already")
    bound = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        bound.bind(path)
    finally:
        os.umask(before)
    bound.listen(_BACKLOG)
    return bound


def _tokens(file: str) -> list[str]:
    """Return the digests in ``file``; lines that start with # are comments. Raises SpecError."""
    try:
        with open(file, encoding="utf-8") as lines:
            entries = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SpecError([Problem("unreadable", file, reason=reason)]) from error
    digests = [(number, line.lower()) for number, line in entries if line and not line.startswith("#")]
    wrong = [Problem("not_a_digest", file, number, 1) for number, line in digests if not _DIGEST.fullmatch(line)]
    if wrong or not digests:
        raise SpecError(wrong or [Problem("empty", file)])
    if sys.platform != "win32" and os.stat(file).st_mode & 0o022:
        sys.stderr.write(f"{file}: Others may write to this file, and let themselves in.\n")
    return [line for _, line in digests]
