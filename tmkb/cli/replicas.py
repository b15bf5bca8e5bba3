"""Options of ``tmkb serve`` for several processes or machines, and what each process needs to reach the others."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import tempfile
from typing import TYPE_CHECKING, Any

from tmkb.errors import Problem, SpecError
from tmkb.transport import sockets
from tmkb.transport.asgi import Application
from tmkb.transport.http import Endpoint

if TYPE_CHECKING:
    from tmkb.server.runtime import Runtime
    from tmkb.transport.guard import Guard
    from tmkb.transport.loop import Updates

_EVERYWHERE = ("", "0.0.0.0", "::")  # addresses to listen on that nobody can connect to


def configure(parser: argparse._ArgumentGroup) -> None:
    """Add the options."""
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="number of processes, which share the clients"
    )
    parser.add_argument(
        "--cluster",
        metavar="URL",
        help="the Redis or Valkey server that replicas share, as redis://HOST:PORT/DATABASE (default: TMKB_CLUSTER)",
    )
    parser.add_argument(
        "--cluster-address",
        metavar="HOST[:PORT]",
        help="where this replica listens for the others (default: the host of --http, and a free port)",
    )


def url(args: argparse.Namespace) -> str | None:
    """Return the URL of Redis from the options or the environment, if any."""
    return args.cluster or os.environ.get("TMKB_CLUSTER") or None


class Replicas:
    """The other processes, of this command (`--workers`) and on other machines (`--cluster`)."""

    def __init__(self, args: argparse.Namespace, remote: bool, keyed: bool) -> None:
        """Check the options, and whether Redis is reachable. Raises SpecError.

        ``remote``: whether an address that is not loopback is allowed. ``keyed``: whether there is a key for request
        states.
        """
        self.url, self.count, self.remote = url(args), args.workers, remote
        self.proxies = args.trusted_proxy or ()
        self.folder = ""
        self.inner: socket.socket | None = None
        if self.url is None and args.cluster_address is not None:
            raise SpecError([Problem.of_argument("cluster_missing", "--cluster-address")])
        if self.url is None and self.count == 1:
            return
        _require_modules("--workers" if self.url is None else "--cluster", redis=self.url is not None)
        if self.url is None:
            self.folder = tempfile.mkdtemp(prefix="tmkb-")
            return
        if not keyed:
            raise SpecError([Problem.of_argument("key_missing", "--cluster")])
        self.address = _inner_address(args)
        _reach(self.url)
        if self.count == 1:
            self.inner = self._bind()
        elif not self.address.endswith(":0"):
            raise SpecError([Problem.of_argument("port_of_workers", "--cluster-address")])

    def application(
        self, runtime: Runtime, guard: Guard, updates: Updates | None, number: int
    ) -> tuple[Application, list[socket.socket]]:
        """Return the application of one process, and the socket on which it listens for the others, if any.

        ``number``: of the process, which no other process of this command has or had.
        """
        if self.url is None and not self.folder:
            return Application(Endpoint(runtime, guard, self.proxies), updates), []
        from tmkb.cluster.directory import Directory, Siblings
        from tmkb.cluster.replica import Replica

        directory: Directory
        if self.url is None:
            directory = siblings = Siblings(self.folder, number)
            inner, _ = sockets.bind(None, siblings.address)
        else:
            from tmkb.cluster.store import Store

            inner = self.inner or self._bind()
            host = self.address.rpartition(":")[0]
            address = f"{host}:{inner.getsockname()[1]}"
            directory = Store(self.url, address, runtime)
        return Replica(runtime, guard, directory, updates, self.proxies), [inner]

    def close(self) -> None:
        """Remove the folder of the sockets."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _bind(self) -> socket.socket:
        return sockets.bind(self.address, remote=self.remote, option="--cluster-address")[0]


def _require_modules(option: str, redis: bool) -> None:
    """Raise SpecError if a module of the extra ``cluster`` is not installed."""
    try:
        import tmkb.cluster.replica

        if redis:
            import tmkb.cluster.store  # noqa: F401 # checks only
    except ImportError as error:
        from tmkb.schema import installation

        raise SpecError([installation.missing(option, "cluster", error.name)]) from error


def _reach(url: str) -> None:
    """Raise SpecError if Redis is not reachable. The message does not contain the URL, which may have a password."""
    from tmkb.cluster import store

    try:
        store.reach(url)
    except ValueError as error:
        raise SpecError([Problem.of_argument("bad_cluster", "--cluster", reason=str(error).rstrip("."))]) from error
    except (OSError, TimeoutError) as error:
        reason = str(error).rstrip(".") or "it does not respond"
        raise SpecError([Problem.of_argument("cluster_unreachable", "--cluster", reason=reason)]) from error


def _inner_address(args: Any) -> str:
    """Return where to listen for the other replicas, as HOST:PORT. Raises SpecError."""
    if args.cluster_address is not None:
        text: str = args.cluster_address
        return text if _has_port(text) else f"{text}:0"
    host = args.http.rpartition(":")[0] if args.http is not None else "127.0.0.1"
    if host.strip("[]") in _EVERYWHERE:
        raise SpecError([Problem.of_argument("cluster_address_missing", "--cluster", host=host)])
    return f"{host}:0"


def _has_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(colon) and port.isdecimal() and (":" not in host or host.endswith("]"))
