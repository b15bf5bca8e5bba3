"""`http.py` as an ASGI application. `listener.py` runs it in uvicorn; other programs can mount it.

Specification: https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from tmkb.errors import ProtocolError
from tmkb.transport.guard import Guard
from tmkb.transport.http import Call, Endpoint
from tmkb.transport.streams import Answer

if TYPE_CHECKING:
    from tmkb.protocol.budget import Budget
    from tmkb.server.runtime import Runtime
    from tmkb.transport.connections import Protocol
    from tmkb.transport.stdio import News

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_CHUNK = 65536
_PROBE = 0.1  # seconds between writes to a client that may have gone


class _Peer:
    """The connection of a request under another server than `listener.py`, which reads and closes as it likes."""

    half_closed = False
    unfinished = False
    on_half_close: Callable[[], object] | None = None

    def read_body(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def occupy(self, principal: str) -> None:
        pass

    def release_when_sent(self, budget: Budget, size: int) -> None:
        budget.release(size)


class Application:
    """An ASGI application that serves an endpoint, and advances its operations between requests.

    It needs no lifespan. Where it is mounted, the endpoint is at ``/mcp`` below the mount. Not thread-safe: all calls
    come from one event loop.
    """

    def __init__(self, runtime: Runtime, guard: Guard, news: News | None = None) -> None:
        self.endpoint = Endpoint(runtime, guard)
        self.log = runtime.log
        self.news = news
        self.moved = asyncio.Event()  # something may be due earlier than it was
        self.working: asyncio.Task[None] | None = None  # while operations are under way
        self.arriving: set[asyncio.Timeout] = set()  # of requests whose body is not complete
        self.ending = False

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    def end(self) -> None:
        """End all streams and refuse incomplete requests, so that a server that waits for them can shut down."""
        self.ending = True
        for timeout in self.arriving:
            if not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())
        self.endpoint.end()
        self.log.flush()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        if self.news is not None:
            threading.Thread(target=self._wait_for, args=(self.news, asyncio.get_running_loop()), daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self.working is not None:
            self.working.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    def _wake(self) -> None:
        """Advance operations when they are due, for as long as any is under way."""
        self.moved.set()
        if self.endpoint.due() is None:
            return
        task = self.working
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            self.moved = asyncio.Event()
            self.working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while (due := self.endpoint.due()) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.moved.wait(), due)
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
        self._wake()

    async def _serve(self, scope: Event, receive: Receive, send: Send) -> None:
        more = asyncio.Event()
        connection: Protocol | _Peer = scope.get("state", {}).get("connection") or _Peer()
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        call = Call(scope["method"], path, _headers(scope), b"")
        try:
            answer = await self._receive(call, receive, more, connection)
        except ProtocolError as error:
            answer = self.endpoint.refuse(call, error, more.set)
        except ConnectionError:
            return
        if "transfer-encoding" in call.headers and "content-length" in call.headers:  # RFC 9112, section 6.1
            answer.headers["connection"] = "close"
        self.log.flush()
        self._wake()
        if answer.ended:
            await self._answer(answer, more, send, connection)
            return
        meanwhile = [asyncio.create_task(_disconnected(receive, answer, more))]
        connection.on_half_close = lambda: meanwhile.append(asyncio.create_task(self._probe(answer)))
        if connection.half_closed:
            connection.on_half_close()
        try:
            await self._answer(answer, more, send, connection)
        finally:
            for task in meanwhile:
                task.cancel()
            self.endpoint.gone(answer)

    async def _receive(self, call: Call, receive: Receive, more: asyncio.Event, connection: Protocol | _Peer) -> Answer:
        """Read the rest of a request and begin to answer it; nothing of its body is kept here.

        Raises:
            ProtocolError: if its principal has too many connections, or the body is late or too large.
            ConnectionError: if the client has gone.
        """
        principal = self.endpoint.principal(call)
        if principal is not None:
            connection.occupy(principal)
        wanted = principal is not None and self.endpoint.wants_body(call)
        if wanted or not _has_body(call.headers):
            connection.read_body()
        if principal is not None and wanted:
            budget = self.endpoint.runtime.budget(principal)
            call = call._replace(body=await self._body(receive, call.headers, budget))
        return self.endpoint.receive(call, more.set)

    async def _probe(self, answer: Answer) -> None:
        """Write to a client that has closed its sending side, until the answer ends. If it has closed both sides, the
        first write makes its system reset the connection and the next one notices that; if not, it gets its answer."""
        while not answer.ended:
            await asyncio.sleep(_PROBE)
            self.endpoint.quiet(answer)

    def _late(self) -> ProtocolError:
        return ProtocolError("shut_down") if self.ending else ProtocolError("request_too_slow")

    async def _body(self, receive: Receive, headers: Mapping[str, str], budget: Budget) -> bytes | None:
        """Return the body; None where it is longer than a message may be. It counts against ``budget`` meanwhile.

        Raises:
            ProtocolError: if the body comes too slowly, takes too much memory, or the server ends.
            ConnectionError: if the client has gone.
        """
        limit, body = self.endpoint.limits["message_bytes"], bytearray()
        with contextlib.suppress(ValueError):
            if int(headers.get("content-length", "0")) > limit:
                return None
        timeout = asyncio.timeout(0 if self.ending else self.endpoint.limits["request_seconds"])
        self.arriving.add(timeout)
        try:
            async with timeout:
                while True:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        raise ConnectionError
                    piece = event.get("body", b"")
                    if not budget.fits(len(piece)):
                        raise ProtocolError("too_much_in_transit", limit=budget.limit)
                    budget.reserve(len(piece))
                    body += piece
                    if len(body) > limit:
                        return None
                    if not event.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise self._late() from None
        finally:
            self.arriving.discard(timeout)
            budget.release(len(body))

    async def _answer(self, answer: Answer, more: asyncio.Event, send: Send, connection: Protocol | _Peer) -> None:
        """Send ``answer`` as it grows. A client that reads nothing for long is disconnected."""
        started = False
        try:
            while True:
                if not (answer.pieces or answer.ended or (answer.begun and not started)):
                    await self._wait(answer, more)
                more.clear()
                if answer.cut:
                    connection.abandon()
                    return
                if not answer.begun:
                    continue
                if not started:
                    started = True
                    await self._send(send, _head(answer, connection))
                    continue
                if await self._send_body(answer, send, connection):
                    return
        except TimeoutError:
            connection.abandon()
        finally:
            answer.take()  # what is not sent any more

    async def _send_body(self, answer: Answer, send: Send, connection: Protocol | _Peer) -> bool:
        """Send what there is of the body, which counts against its budget until the system has taken it.

        Returns:
            Whether it was the last part.
        """
        ended, body, budget = answer.ended, answer.take(), answer.budget
        size = len(body) if budget is not None and budget.fits(len(body)) else 0
        if budget is not None:
            budget.reserve(size)
        try:
            await self._send(send, {"type": "http.response.body", "body": body, "more_body": not ended})
        finally:
            if budget is not None:
                connection.release_when_sent(budget, size)
        return ended

    async def _wait(self, answer: Answer, more: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(self.endpoint.limits["quiet_seconds"]):
                await more.wait()
        except TimeoutError:
            self.endpoint.quiet(answer)

    async def _send(self, send: Send, event: Event) -> None:
        """Send ``event``. Raises TimeoutError where the client does not read."""
        async with asyncio.timeout(self.endpoint.limits["request_seconds"]):
            await send(event)


async def _disconnected(receive: Receive, answer: Answer, more: asyncio.Event) -> None:
    """End ``answer`` when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    answer.cut = True
    answer.end()
    more.set()


def _head(answer: Answer, connection: Protocol | _Peer) -> Event:
    """Make the event that begins a response. A request that was not read to its end is the last of its connection."""
    headers = {**answer.headers, "connection": "close"} if connection.unfinished else answer.headers
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": answer.status, "headers": encoded}


def _headers(scope: Event) -> dict[str, str]:
    """Names in lower case; what comes several times is joined, as RFC 9110 has it."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in headers.items()}


def _has_body(headers: Mapping[str, str]) -> bool:
    """Whether a body follows the head of a request (RFC 9112, section 6.3)."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
