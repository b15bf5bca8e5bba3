"""Run the ASGI application with uvicorn: sockets, signals, shutdown, logging."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import uvicorn

from tmkb.errors import SpecError
from tmkb.schema import problems
from tmkb.transport.asgi import Application
from tmkb.transport.connections import Pool, Protocol

if TYPE_CHECKING:
    from types import FrameType

    from tmkb.server.log import Log

_SETTLING = 1.0  # seconds in which the first request arrives on a connection that was accepted last
_TICK = 0.05  # seconds
_M_MMAP_THRESHOLD = -3  # of malloc.h
_BLOCK = 131072  # bytes; the initial value in glibc


class LogHandler(logging.Handler):
    """Writes log records of uvicorn and asyncio to the log of the server, which never blocks."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record`` as one line. Warnings, which bad requests cause, have the level debug."""
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):  # at the end of the server
            return
        text = "; ".join(line.strip() for line in record.getMessage().splitlines() if line.strip())
        if record.exc_info and record.exc_info[1] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}{place}"
        self.log.write("http_failed" if record.levelno >= logging.ERROR else "http_warning", text=text)
        self.log.flush()

    def install(self) -> None:
        """Replace the handlers of uvicorn and asyncio."""
        for name in ("uvicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [self], False
            logger.setLevel(logging.WARNING)


class Options(NamedTuple):
    """How a server starts, reloads and ends.

    ``drain``: seconds for which it still accepts connections after SIGTERM. ``grace``: seconds for running requests
    after that. ``reload``: reads everything again at SIGHUP, in a thread, and returns a function that applies it in
    the event loop; it raises SpecError. ``retires``: whether SIGHUP ends the server instead, because another process
    accepts the connections of its socket. ``started``: called as soon as the server accepts connections.
    """

    drain: float = 0.0
    grace: float = 5.0
    reload: Callable[[], Callable[[Application], None]] | None = None
    retires: bool = False
    started: Callable[[], None] = lambda: None


_DEFAULT = Options()


class Server(uvicorn.Server):
    """A uvicorn server that limits connections, and ends in steps.

    SIGTERM: it reports that it is not ready, and serves for `Options.drain` seconds, so that load balancers notice.
    Then it accepts no connections, ends streams, and waits for running requests. SIGINT: the same without the delay.
    Another signal ends it at once.
    """

    def __init__(
        self, config: uvicorn.Config, application: Application, bound: Sequence[socket.socket], options: Options
    ) -> None:
        super().__init__(config)
        self.application = application
        self.bound = bound
        self.options = options
        self.tasks: list[asyncio.Task[None]] = []  # accept connections and reload
        self.ends_at: float | None = None  # of a monotonic clock, after a signal
        self.is_drain_logged = False
        self.settling = 0.0  # seconds for requests on open connections, after the last connection was accepted
        self.hangup = asyncio.Event()
        self.in_terminal = os.isatty(0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets=[])
        limits = self.application.endpoint.limits
        max_open = _connection_limit(limits["connections"])
        max_per_principal = max(1, max_open * limits["principal_connections"] // limits["connections"])
        if not self.application.endpoint.guard.needs_token:
            max_per_principal = max_open
        self.pool = Pool(limits, max_open, max_per_principal, self.application.log)
        for bound in self.bound:
            bound.setblocking(False)  # before the tasks begin, because a signal can end them at once
        self.tasks = [asyncio.create_task(self.pool.accept(bound, self._protocol)) for bound in self.bound]
        loop, options = asyncio.get_running_loop(), self.options
        if sys.platform != "win32" and options.retires:
            loop.add_signal_handler(signal.SIGHUP, self._retire)
        elif sys.platform != "win32" and options.reload is not None:
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
            self.tasks.append(asyncio.create_task(self._reload(options.reload)))
        options.started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain at the first signal. End at once at the second."""
        if self.ends_at is not None:
            self.should_exit = self.force_exit = True
            return
        drain = 0.0 if sig == signal.SIGINT else self.options.drain
        self._end(drain, min(drain, _SETTLING))

    async def on_tick(self, counter: int) -> bool:
        """Return whether to shut down."""
        if self.ends_at is not None:
            rest = self.ends_at - time.monotonic()
            self.should_exit |= rest <= 0
            if rest > 0 and not self.is_drain_logged:  # not in the signal handler, which can interrupt the log
                self.is_drain_logged = True
                self.application.log.write("draining", seconds=f"{rest:.0f}")
                self.application.log.flush()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end all streams, and wait for other requests."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for bound in self.bound:
            self.pool.accept_waiting(bound, self._protocol)
            bound.close()
        until = time.monotonic() + self.settling
        while time.monotonic() < until and not self.force_exit:
            await asyncio.sleep(_TICK)
        self.pool.shutting_down = True
        self.application.shutdown()
        await super().shutdown([])
        self._captured_signals.clear()  # or uvicorn raises the signal again, which changes the exit status

    def _protocol(self) -> Protocol:
        return Protocol(self.pool, self.application, self.server_state)

    def _end(self, drain: float, settling: float) -> None:
        self.application.drain()
        self.ends_at, self.settling = time.monotonic() + drain, settling

    def _retire(self) -> None:
        """End, but finish what was begun on open connections. Another process accepts new ones."""
        if self.ends_at is None:
            self._end(0.0, max(self.options.drain, _SETTLING))

    def _on_hangup(self) -> None:
        """Reload. End if the terminal of the server was closed, which also sends SIGHUP."""
        if self.in_terminal and not os.isatty(0):
            self.handle_exit(signal.SIGTERM, None)
        else:
            self.hangup.set()

    async def _reload(self, reload: Callable[[], Callable[[Application], None]]) -> None:
        while True:
            await self.hangup.wait()
            self.hangup.clear()
            try:
                apply = await asyncio.to_thread(reload)
                apply(self.application)
            except SpecError as error:
                self.application.log.write("not_reread")
                for problem in error.problems:
                    self.application.log.write("problem", problem=problems.line(problem))
            except Exception as error:  # the next SIGHUP tries again
                self.application.log.write("not_reread")
                self.application.log.write("failed", line=f"{type(error).__name__}: {error}", ref="")
            else:
                self.application.log.write("reread")
            self.application.log.flush()


def _connection_limit(limit: int) -> int:
    """Return ``limit``, or less to leave a quarter of the process's descriptors for other files."""
    if sys.platform == "win32":  # sockets are not descriptors
        return limit
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if descriptors == resource.RLIM_INFINITY else max(1, min(limit, descriptors * 3 // 4))


def _return_large_blocks() -> None:
    """Make glibc return the memory of large bodies and responses to the system when they are freed.

    By default, glibc raises its threshold for this to the size of each freed block, up to 32 MiB. Later blocks of this
    size are on the heap, which cannot shrink below small blocks after them. A fixed threshold avoids it (mallopt(3)).
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # not glibc
        import ctypes

        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BLOCK)


def serve(application: Application, *bound: socket.socket, options: Options = _DEFAULT) -> None:
    """Serve on the listening sockets ``bound`` until SIGTERM or SIGINT."""
    runtime = application.endpoint.runtime
    LogHandler(runtime.log).install()
    _return_large_blocks()
    config = uvicorn.Config(
        application,
        http="h11",  # loads no other parser; `Server.startup` uses our protocol
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=options.grace,  # type: ignore[arg-type] # passed to asyncio.wait_for
    )
    Server(config, application, bound, options).run()
    runtime.stop()
    runtime.log.write("shutdown")
    runtime.log.flush()
