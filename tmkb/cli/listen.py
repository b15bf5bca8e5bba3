"""``tmkb serve`` over HTTP or a Unix domain socket: sockets, tokens and worker processes."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tmkb.cli import metrics, replicas
from tmkb.errors import Problem, SpecError
from tmkb.server import log
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server
from tmkb.transport import addresses
from tmkb.transport.addresses import Network
from tmkb.transport.guard import LOOPBACK, Guard, is_loopback

if TYPE_CHECKING:
    import socket

    from tmkb.access.access import Access
    from tmkb.insight.observer import Observer, Receiver
    from tmkb.server.reload import Reloader
    from tmkb.transport.asgi import Application

_DIGEST = re.compile(r"[0-9a-f]{64}")
_DRAIN = 5.0  # seconds; a Kubernetes service takes about as long to forget a pod
_GRACE = 5.0  # seconds
_MOST_WORKERS = 256


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
    http.add_argument(
        "--trusted-proxy",
        action="append",
        type=_network,
        metavar="NETWORK",
        help="an address or network whose X-Forwarded-For names the client, such as 10.0.0.0/8 (repeatable)",
    )
    http.add_argument(
        "--drain",
        type=_seconds,
        metavar="SECONDS",
        help=f"how long to serve after SIGTERM, while /readyz fails (default: {_DRAIN:g}, at a loopback address 0)",
    )
    http.add_argument(
        "--grace",
        type=_seconds,
        default=_GRACE,
        metavar="SECONDS",
        help="how long running requests may take at the end (default: %(default)g)",
    )
    replicas.configure(http)


def requested(args: argparse.Namespace) -> bool:
    """Return whether the options select HTTP or a Unix domain socket."""
    return args.http is not None or args.uds is not None or _first(args) is not None


def _first(args: argparse.Namespace) -> str | None:
    """Return the first option that requires HTTP; None if there is none."""
    used = [name for name in ("allow_remote", "insecure") if getattr(args, name)]
    without_default = ("allow_host", "allow_origin", "auth_tokens", "access", "trusted_proxy", "drain", "metrics")
    used += [name for name in (*without_default, "cluster", "cluster_address") if getattr(args, name) is not None]
    used += ["grace"] * (args.grace != _GRACE) + ["workers"] * (args.workers != 1)
    return f"--{used[0].replace('_', '-')}" if used else None


def _origin(text: str) -> str:
    parts = urllib.parse.urlsplit(text)
    if not parts.netloc or text != f"{parts.scheme}://{parts.netloc}":
        raise argparse.ArgumentTypeError(f"'{text}' is not an origin. Write SCHEME://HOST or SCHEME://HOST:PORT")
    return text


def _network(text: str) -> Network:
    try:
        return addresses.network(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not an address or a network such as 10.0.0.0/8") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return seconds


def supervise(args: argparse.Namespace) -> int | None:
    """Supervise the processes of ``--workers``, and return the exit status.

    Return None if this process has to serve, because it is one of them or the only one. Raises SpecError.
    """
    if sys.platform == "win32" or args.workers <= 1 or not (args.http or args.uds):
        return None
    _check(args)
    from tmkb.transport import generations, sockets

    if generations.exists():
        return None
    bound, url = sockets.bind(args.http, args.uds, remote=_authenticates(args) or args.insecure)
    if replicas.url(args) is None:  # else other machines need the same key
        os.environ.setdefault("TMKB_STATE_KEY", os.urandom(32).hex())
    with contextlib.closing(metrics.Pages(args.metrics, shared=True)) as pages:
        return generations.run(bound, url, args.workers, pages.inherited)


class Hooks(NamedTuple):
    """What only the caller of `listen` can do.

    ``load``: reads the server again, at SIGHUP. ``updates``: returns the reloads of a runtime. ``observe``: returns
    what observes requests, together with a page of metrics.
    """

    load: Callable[[], Server]
    updates: Callable[[Runtime], Reloader | None]
    observe: Callable[[Receiver | None], Observer | None]


def listen(args: argparse.Namespace, server: Server, output: log.Log, keys: Sequence[bytes], hooks: Hooks) -> int:
    """Serve until a signal arrives. Raises SpecError.

    Args:
        args: the options.
        server: what is served.
        output: the log.
        keys: sign request states; empty for a random key.
        hooks: what else is needed.
    """
    _check(args)
    with contextlib.ExitStack() as ending:
        return _Service(args, server, output, keys, hooks, ending).run()


class _Service:
    """The parts that every process of the server needs. Arguments: see `listen`."""

    def __init__(
        self,
        args: argparse.Namespace,
        server: Server,
        output: log.Log,
        keys: Sequence[bytes],
        hooks: Hooks,
        ending: contextlib.ExitStack,
    ) -> None:
        self.args, self.server, self.output, self.hooks = args, server, output, hooks
        self.guard = _guard(args, server, output)
        self.remote = _authenticates(args) or args.insecure
        self.others = ending.enter_context(contextlib.closing(replicas.Replicas(args, self.remote, bool(keys))))
        self.pages = ending.enter_context(contextlib.closing(metrics.Pages(args.metrics)))
        self.keys = keys or [os.urandom(32)]

    def run(self) -> int:
        """Serve in this process, or in several; return the exit status."""
        from tmkb.transport import sockets

        if sys.platform == "win32" or self.args.workers == 1:
            bound, url = sockets.bind(self.args.http, self.args.uds, self.remote)
            self.serve(1, bound, lambda: self.announce(url))
            return 0
        from tmkb.transport import generations, workers

        bound, url, report = generations.inherited()
        self.announce(url)
        return workers.run(self.args.workers, lambda number: self.serve(number, bound, report))

    def announce(self, url: str) -> None:
        """Log what is served, and where."""
        self.server.announce(self.output, url)
        self.pages.announce(self.output)
        self.output.flush()

    def serve(self, number: int, bound: socket.socket, started: Callable[[], None]) -> None:
        """Serve until a signal arrives. ``number``: of the process. ``started``: called when it accepts connections."""
        from tmkb.transport import listener

        supervised = self.args.workers != 1
        with contextlib.ExitStack() as ending:
            if (observer := self.hooks.observe(self.pages.open())) is not None:
                ending.callback(observer.close)
            runtime = self.server.runtime(self.output, self.keys, observer)
            if (news := self.hooks.updates(runtime)) is not None:
                ending.callback(news.close)
            options = listener.Options(
                drain=_drain(self.args),
                grace=self.args.grace,
                reload=None if supervised else lambda: self.read(runtime),
                retires=supervised,
                started=started,
            )
            application, inner = self.others.application(runtime, self.guard, news, number)
            listener.serve(application, bound, *inner, options=options)

    def read(self, runtime: Runtime) -> Callable[[Application], None]:
        """Read all files again, and return a function that applies them. Raises SpecError."""
        server = self.hooks.load()
        guard = _guard(self.args, server, self.output)

        def apply(application: Application) -> None:
            application.use(guard)
            application.endpoint.dispatch(runtime.replace(*server.snapshots()))

        return apply


def _drain(args: argparse.Namespace) -> float:
    """Return the seconds to serve after SIGTERM. There is no load balancer in front of a loopback address."""
    if args.drain is not None:
        return float(args.drain)
    is_local = args.http is None or is_loopback(args.http.rpartition(":")[0].strip("[]"))
    return 0.0 if is_local else _DRAIN


def _require_modules() -> None:
    """Raise SpecError if a module of the extra ``http`` is not installed."""
    try:
        import tmkb.transport.listener  # noqa: F401 # checks only
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing("--http", "http", error.name)]) from error


def _check(args: argparse.Namespace) -> None:
    """Raise SpecError for options that exclude each other, or need another one or a module."""
    if args.http is None and args.uds is None:
        raise SpecError([Problem.of_argument("http_only", str(_first(args)))])
    if not 1 <= args.workers <= (1 if sys.platform == "win32" else _MOST_WORKERS):
        raise SpecError([Problem.of_argument("bad_workers", "--workers", count=args.workers)])
    _require_modules()


def _authenticates(args: argparse.Namespace) -> bool:
    """Return whether clients have to authenticate."""
    return args.auth_tokens is not None or args.access is not None


def _guard(args: argparse.Namespace, server: Server, output: log.Log) -> Guard:
    """Read the files that the options name, and return the access control. Raises SpecError."""
    access = _access(args.access, server, output) if args.access is not None else None
    tokens = _tokens(args.auth_tokens, access) if args.auth_tokens is not None else {}
    if access is not None and not tokens and not access.policy.issuers:
        raise SpecError([Problem.of_argument("nobody_admitted", "--access")])
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
