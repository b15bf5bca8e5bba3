"""`http.py` as an ASGI application, and uvicorn around it: sockets, time limits, signals.

Specification: https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tmkb.runtime import Runtime
from tmkb.transport.guard import Guard
from tmkb.transport.http import Call, Endpoint
from tmkb.transport.streams import Answer

if TYPE_CHECKING:
    from tmkb.transport.stdio import News

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_CHUNK = 65536
_GRACE = 5  # seconds for what runs when the server ends


class Application:
    """An endpoint, its operations going on between requests."""

    def __init__(self, runtime: Runtime, guard: Guard, news: News | None = None) -> None:
        self.endpoint = Endpoint(runtime, guard)
        self.log = runtime.log
        self.news = news
        self.moved = asyncio.Event()  # something may be due earlier than it was
        self.working: asyncio.Task[None] | None = None

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    def end(self) -> None:
        """No more requests come: tell those who listen."""
        self.endpoint.end()
        self.log.flush()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.working = asyncio.create_task(self._work())
        if self.news is not None:
            threading.Thread(target=self._wait_for, args=(self.news, asyncio.get_running_loop()), daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.working.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _work(self) -> None:
        """Go on with operations when their time has come."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.moved.wait(), self.endpoint.due())
            self.moved.clear()
            self.endpoint.work()
            self.log.flush()
            await asyncio.sleep(0)

    def _wait_for(self, news: News, loop: asyncio.AbstractEventLoop) -> None:
        """Read news in a thread of its own, which no loop of any system minds; it is heard in the loop."""
        chunk = b"."
        while chunk and not loop.is_closed():
            chunk = os.read(news.fd, _CHUNK)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._hear, news, chunk)

    def _hear(self, news: News, chunk: bytes) -> None:
        self.endpoint.say(news.feed(chunk))
        self.log.flush()
        self.moved.set()

    async def _serve(self, scope: Event, receive: Receive, send: Send) -> None:
        more = asyncio.Event()
        headers = _headers(scope)
        try:
            body = await asyncio.wait_for(self._body(receive, headers), self.endpoint.limits["request_seconds"])
            answer = self.endpoint.receive(Call(scope["method"], scope["path"], headers, body), more.set)
        except TimeoutError:
            answer = self.endpoint.too_slow(more.set)
        except ConnectionError:
            return
        self.log.flush()
        self.moved.set()
        gone = asyncio.create_task(_disconnected(receive, answer, more))
        try:
            await self._answer(answer, more, send)
        finally:
            gone.cancel()
            self.endpoint.gone(answer)

    async def _body(self, receive: Receive, headers: dict[str, str]) -> bytes | None:
        """The body; None where it is longer than a message may be. Raises ConnectionError where it does not come."""
        limit, body = self.endpoint.limits["message_bytes"], bytearray()
        with contextlib.suppress(ValueError):
            if int(headers.get("content-length", "0")) > limit:
                return None
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise ConnectionError
            body += event.get("body", b"")
            if len(body) > limit:
                return None
            if not event.get("more_body", False):
                return bytes(body)

    async def _answer(self, answer: Answer, more: asyncio.Event, send: Send) -> None:
        started = False
        while True:
            if not (answer.pieces or answer.ended or (answer.begun and not started)):
                await self._wait(answer, more)
            more.clear()
            if answer.cut:
                return
            if not answer.begun:
                continue
            if not started:
                started = True
                head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
                await self._send(send, {"type": "http.response.start", "status": answer.status, "headers": head})
                continue
            ended = answer.ended
            await self._send(send, {"type": "http.response.body", "body": answer.take(), "more_body": not ended})
            if ended:
                return

    async def _wait(self, answer: Answer, more: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(more.wait(), self.endpoint.limits["quiet_seconds"])
        except TimeoutError:
            self.endpoint.quiet(answer)

    async def _send(self, send: Send, event: Event) -> None:
        """Hand ``event`` on; a client that reads nothing for long is given up."""
        await asyncio.wait_for(send(event), self.endpoint.limits["request_seconds"])


async def _disconnected(receive: Receive, answer: Answer, more: asyncio.Event) -> None:
    """End ``answer`` when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    answer.cut = True
    answer.end()
    more.set()


def _headers(scope: Event) -> dict[str, str]:
    """Names in lower case; what comes several times is joined, as RFC 9110 has it."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class _Protocol(H11Protocol):
    """One connection, which may not take for ever to say what it wants."""

    seconds = 30.0
    patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def _expect(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
        self.patience = self.loop.call_later(self.seconds, self._look, self.cycle)

    def _look(self, before: Any) -> None:
        """Close it where no request has begun since."""
        if self.cycle is before and (before is None or before.response_complete) and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn, which tells those who listen before it waits for them."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self.application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what only waits; let the rest finish."""
        self.application.end()
        await super().shutdown(sockets)
        self._captured_signals.clear()  # a signal is how we are told to end: it has done its work


def serve(runtime: Runtime, guard: Guard, bound: socket.socket, news: News | None = None) -> None:
    """Serve on a socket that is bound and listens, until a signal comes."""
    limits = runtime.spec["server"]["limits"]
    protocol = type("Protocol", (_Protocol,), {"seconds": limits["request_seconds"]})
    application = Application(runtime, guard, news)
    config = uvicorn.Config(
        application,
        http=protocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=limits["head_bytes"],
        timeout_graceful_shutdown=_GRACE,
    )
    Server(config, application).run(sockets=[bound])
    runtime.stop()
    runtime.log.write("shutdown")
    runtime.log.flush()
