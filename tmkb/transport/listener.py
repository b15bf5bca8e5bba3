"""Run the ASGI application with uvicorn: sockets, signals, shutdown, logging."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import uvicorn

from tmkb.transport.asgi import Application
from tmkb.transport.connections import Pool, Protocol

if TYPE_CHECKING:
    from tmkb.server.log import Log

_GRACE = 5  # seconds for requests that run at shutdown
_M_MMAP_THRESHOLD = -3  # of malloc.h
_BLOCK = 131072  # bytes; the initial value in glibc


class LogHandler(logging.Handler):
    """Writes log records of uvicorn and asyncio to the log of the server, which never blocks."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record`` as one line. Warnings, which bad requests cause, have the level debug."""
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


class Server(uvicorn.Server):
    """A uvicorn server that limits connections, and ends streams before it waits for requests."""

    def __init__(self, config: uvicorn.Config, application: Application, bound: Sequence[socket.socket]) -> None:
        super().__init__(config)
        self.application = application
        self.bound = bound
        self.accept_tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets=[])
        limits = self.application.endpoint.limits
        max_open = _connection_limit(limits["connections"])
        max_per_principal = max(1, max_open * limits["principal_connections"] // limits["connections"])
        if not self.application.endpoint.guard.needs_token:
            max_per_principal = max_open
        self.pool = Pool(limits, max_open, max_per_principal, self.application.log)
        pool = self.pool

        def make() -> Protocol:
            return Protocol(pool, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        self.accept_tasks = [asyncio.create_task(pool.accept(bound, make)) for bound in self.bound]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end all streams, and wait for other requests."""
        for task in self.accept_tasks:
            task.cancel()
        await asyncio.gather(*self.accept_tasks, return_exceptions=True)
        for bound in self.bound:
            bound.close()
        self.pool.shutting_down = True
        self.application.shutdown()
        await super().shutdown([])
        self._captured_signals.clear()  # or uvicorn raises the signal again, which changes the exit status


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


def serve(application: Application, *bound: socket.socket) -> None:
    """Serve on the listening sockets ``bound`` until SIGTERM or SIGINT."""
    runtime = application.endpoint.runtime
    LogHandler(runtime.log).install()
    _return_large_blocks()
    config = uvicorn.Config(
        application,
        http=Protocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    Server(config, application, bound).run()
    runtime.stop()
    runtime.log.write("shutdown")
    runtime.log.flush()
