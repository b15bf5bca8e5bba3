"""uvicorn around the ASGI application: sockets, time limits, signals."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import uvicorn

from tmkb.transport.asgi import Application
from tmkb.transport.connections import LogHandler, Pool, Protocol

if TYPE_CHECKING:
    from tmkb.server.runtime import Runtime
    from tmkb.transport.guard import Guard
    from tmkb.transport.stdio import News

_GRACE = 5  # seconds for what runs when the server ends
_M_MMAP_THRESHOLD = -3  # of malloc.h
_BLOCK = 131072  # bytes; glibc's own value at the start


class Server(uvicorn.Server):
    """uvicorn with its own way to accept connections, which tells streams about the end before it waits for them."""

    def __init__(self, config: uvicorn.Config, application: Application, bound: socket.socket) -> None:
        super().__init__(config)
        self.application = application
        self.bound = bound
        self.accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets=[])
        limits = self.application.endpoint.limits
        most = _most_connections(limits["connections"])
        share = max(1, most * limits["principal_connections"] // limits["connections"])
        self.pool = Pool(limits, most, share if self.application.endpoint.guard.tokens else most, self.application.log)
        pool = self.pool

        def make() -> Protocol:
            return Protocol(pool, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        self.accepting = asyncio.create_task(pool.accept(self.bound, make))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what only waits; let the rest finish."""
        if self.accepting is not None:
            self.accepting.cancel()
            await asyncio.wait([self.accepting])
        self.bound.close()
        self.pool.ending = True
        self.application.end()
        await super().shutdown([])
        self._captured_signals.clear()  # a signal is how we are told to end: it has done its work


def _most_connections(limit: int) -> int:
    """At most ``limit``, and no more than leave a quarter of the process's descriptors for other files."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are no descriptors
        return limit
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if descriptors == resource.RLIM_INFINITY else max(1, min(limit, descriptors * 3 // 4))


def _return_large_blocks() -> None:
    """Have large blocks returned to the system when they are freed: bodies and responses are large and come together.

    glibc raises its threshold for that to the size of each such block that is freed, up to 32 MiB. Later blocks of that
    size lie in the heap, which small ones after them keep from shrinking. Setting the threshold fixes it (mallopt(3)).
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        import ctypes

        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BLOCK)


def serve(runtime: Runtime, guard: Guard, bound: socket.socket, news: News | None = None) -> None:
    """Serve on a socket that is bound and listens, until a signal comes."""
    LogHandler(runtime.log).install()
    _return_large_blocks()
    application = Application(runtime, guard, news)
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
