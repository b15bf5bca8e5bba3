"""Connections of the HTTP server: their number, their timeouts, and the work for each.

`Protocol` decides when a connection reads and parses, and when it ends. `Exchange` is one request and its response.
Specification: RFC 9112 (HTTP/1.1).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http
import logging
import socket
import urllib.parse
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from tmkb.errors import ProtocolError
from tmkb.transport.http import Request
from tmkb.transport.parser import END, Head, Invalid, Parser

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from tmkb.protocol.budget import Budget
    from tmkb.schema.model import Limits
    from tmkb.server.log import Log
    from tmkb.transport.asgi import Application
    from tmkb.transport.streams import Response

Headers = list[tuple[bytes, bytes]]

_BUFFER = memoryview(bytearray(32768))  # shared by all connections, which copy the data at once
_EVENTS = 8  # that a connection parses per turn of the event loop
_ACCEPTS = 32  # connections to accept per turn of the event loop
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TURNS = 4  # of the event loop until data of a new connection is read
_EXTRA = 16  # connections beyond the limit, or a sixteenth of the limit: they get answers to probes, and errors
_RETRY = 0.1  # seconds until the next accept after the system ran out of resources
_KEEP_ALIVE = 5.0  # seconds until a connection closes on which no request follows
_MAX_BODY = 65536  # bytes of a body that the application has not taken yet
_AHEAD = 32768  # bytes of later requests after which reading pauses. Until then it shows that the peer has gone
_TICK = 0.001  # seconds by which a timer may be early
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_INVALID = "Invalid HTTP request received."

_logger = logging.getLogger("uvicorn.error")


class Transport:
    """A transport that pauses reading for two reasons, and closes in stages if the peer may still send.

    Closing at once would reset the connection, and the peer could lose the response (RFC 9112, section 9.6).
    """

    def __init__(self, transport: asyncio.Transport, protocol: Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._limits = protocol.pool.limits
        self._is_reading = True
        self._is_full = self._waits = self._lingering = False
        self.write = transport.write
        self.abort = transport.abort
        self.timer: asyncio.TimerHandle | None = None  # limits the duration of a close

    def set_full(self, full: bool) -> None:
        """Pause or resume because the application has not taken the body yet."""
        self._is_full = full
        self._update_reading()

    def set_waiting(self, waits: bool) -> None:
        """Pause or resume because of unparsed data."""
        self._waits = waits
        self._update_reading()

    def is_closing(self) -> bool:
        """Return whether no more requests are read."""
        return self._lingering or self._transport.is_closing()

    def close(self) -> None:
        """Send buffered data and close. Until it is sent, and for a while, discard what the peer still sends."""
        if self.is_closing():
            return
        unsent = self._transport.get_write_buffer_size()
        may_send = not (self._protocol.half_closed or self._protocol.pool.shutting_down)
        self._lingering = may_send and (unsent > 0 or self._protocol.has_unread)
        if not self._lingering:
            self._transport.close()
        else:
            self._is_full = self._waits = False
            self._update_reading()
            try:
                self._transport.write_eof()
            except OSError:  # the peer has closed the connection
                self._transport.abort()
                return
        if unsent or self._lingering:
            self._limit_close(unsent, asyncio.get_running_loop().time())

    def _limit_close(self, before: int, since: float) -> None:
        """Abort `request_seconds` after the peer has last read something, or `linger_seconds` after it has read all.

        ``before``: bytes that were unsent when this was last called. ``since``: when the peer has last read something.
        """
        loop, unsent = asyncio.get_running_loop(), self._transport.get_write_buffer_size()
        if unsent < before:
            since = loop.time()
        left = since + self._limits["request_seconds" if unsent else "linger_seconds"] - loop.time()
        if left < _TICK:
            self._transport.abort()
        else:
            self.timer = loop.call_later(min(left, self._limits["linger_seconds"]), self._limit_close, unsent, since)

    def _update_reading(self) -> None:
        reads = not (self._is_full or self._waits)
        if reads == self._is_reading:
            return
        self._is_reading = reads
        if reads:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


class Exchange:
    """A request and its response: `receive` and `send` of ASGI for the application."""

    def __init__(self, protocol: Protocol, head: Head) -> None:
        self.protocol = protocol
        self.is_head = head.verb == "HEAD"
        self.is_modern = head.is_modern
        self.keeps_alive = head.persists
        self.expects = head.is_modern and head.headers.get("expect", "").lower() == "100-continue"
        self.body = bytearray()  # that the application has not taken yet
        self.more_body = True
        self.news = asyncio.Event()  # something for `receive`
        self.disconnected = self.started = self.complete = self._is_chunked = False
        self._unsent = b""  # the head of the response, until a part of the body or the next turn of the event loop

    async def run(self, answer: Coroutine[Any, Any, None]) -> None:
        """Run the application, and complete the response if it does not."""
        try:
            await answer
        except BaseException as error:
            self.fail(error)
        else:
            if not (self.complete or self.disconnected):
                self.fail(RuntimeError("no response"))

    def fail(self, error: BaseException) -> None:
        """Log an error of the application, and end the response."""
        _logger.error("Exception in ASGI application\n", exc_info=error)
        if self.started or self.disconnected:
            self.protocol.transport.close()
            return
        self.keeps_alive = False
        self.respond(500, {"content-type": "text/plain; charset=utf-8"}, b"Internal Server Error")

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body, or that the client has disconnected."""
        if self.expects and self.more_body and not (self.started or self.protocol.transport.is_closing()):
            self.expects = False
            self.protocol.transport.write(_CONTINUE)
        if not (self.disconnected or self.complete):
            self.protocol.transport.set_full(False)
            await self.news.wait()
            self.news.clear()
        if self.disconnected or self.complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, event: MutableMapping[str, Any]) -> None:
        """Send the head of the response, or a part of its body. Waits while the client does not read."""
        if self.protocol.write_paused and not self.disconnected:
            await self.protocol.writable.wait()
        if self.disconnected or self.complete:
            return
        if event["type"] == "http.response.start":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event["headers"]}
            self._unsent = self._start(event["status"], headers)
            self.protocol.loop.call_soon(self._flush)
            return
        body = b"" if self.is_head else event.get("body", b"")
        ends = not event.get("more_body", False)
        if self._is_chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"0\r\n\r\n" if ends else b"")
        data, self._unsent = self._unsent + body, b""
        if data:
            self.protocol.transport.write(data)
        if ends:
            self._end()

    def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        if "content-length" not in headers and status != 204:
            headers = {**headers, "content-length": str(len(body))}
        head = self._start(status, headers)
        self.protocol.transport.write(head if self.is_head else head + body)
        self._end()

    def end_input(self) -> None:
        """Note the end of the body."""
        self.more_body = False
        self.news.set()

    def disconnect(self) -> None:
        """Note that the client gets no response any more."""
        self.disconnected = True
        self.news.set()

    def _start(self, status: int, headers: Mapping[str, str]) -> bytes:
        """Return the head of the response. Raises ValueError if a header would be several lines."""
        framing = ""
        if "content-length" not in headers and status not in (204, 304):
            self._is_chunked = self.is_modern and not self.is_head
            self.keeps_alive = self.keeps_alive and self.is_modern
            framing = "transfer-encoding: chunked\r\n" if self.is_modern else ""
        if headers.get("connection") == "close":
            self.keeps_alive = False
        elif not self.keeps_alive:
            framing += "connection: close\r\n"
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if not lines.count("\r") == lines.count("\n") == len(headers) or "\0" in lines:
            raise ValueError("a header has a line break")
        self.started = True
        return f"{_STATUS_LINES[status]}{self.protocol.default_lines}{lines}{framing}\r\n".encode("latin-1")

    def _flush(self) -> None:
        if self._unsent and not self.disconnected:
            self.protocol.transport.write(self._unsent)
        self._unsent = b""

    def _end(self) -> None:
        self.complete = True
        self.news.set()
        self.protocol.on_response_complete()


class Protocol(asyncio.BufferedProtocol):
    """One connection. Connections parse in turns, and read bodies on demand."""

    transport: Transport

    def __init__(self, pool: Pool, application: Application, state: ServerState) -> None:
        """``state``: what uvicorn waits for at its end."""
        self.pool = pool
        self.application = application
        self.state = state
        self.loop = asyncio.get_running_loop()
        self.parser = Parser(pool.limits["head_bytes"])
        self.exchange: Exchange | None = None  # the current or last one
        self.peer = ""  # the address of the client
        self.paused = False  # after a head, until the application decides whether to read the body
        self.failed = False  # what the peer has sent is not HTTP
        self.discards_input = False
        self.has_discarded = False  # something that the peer has sent
        self.is_parsing = False
        self.next_turn: asyncio.Handle | None = None  # of the parser
        self.is_extra = False  # beyond the limit
        self.half_closed = False  # the peer has closed its sending side
        self.on_half_close: Callable[[], None] | None = None
        self.write_paused = False  # the peer does not read
        self.writable = asyncio.Event()
        self.unsent: list[tuple[Budget, int]] = []  # bytes that count against a budget until they are sent
        self.waiting_since = 0.0  # of the clock of the event loop
        self.deadline: float | None = None  # for the next head
        self.timer: asyncio.TimerHandle | None = None  # calls `_on_time` at the deadline or before

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        self.transport = Transport(transport, self)
        self.state.connections.add(self)  # type: ignore[arg-type]
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if isinstance(address, tuple) else ""
        self.is_extra = self.pool.open > self.pool.max_open
        self._wait()

    def assign(self, principal: str) -> None:
        """Count the connection for ``principal``. Raises ProtocolError if the principal has too many connections."""
        self.pool.assign(self, principal)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the pool close the connection meanwhile: nobody knows yet whether the client may use the server.

        Raises:
            ConnectionError: at the end, if the connection was closed.
        """
        self.pool.add_idle(self)
        try:
            yield
        finally:
            self.pool.idle.pop(self, None)
        if self.transport.is_closing():
            raise ConnectionError

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the data in the buffer now, or in the next turn of the parser. Ignore it after the last request."""
        if self.transport.is_closing():
            return
        if not self._may_follow:
            self.has_discarded = True
            return
        self.parser.receive(bytes(_BUFFER[:nbytes]))
        if self.deadline is not None:
            self._expect(self.waiting_since + self.pool.limits["request_seconds"])
        if self.next_turn is None:
            self.parse()

    def parse(self) -> None:
        """Parse for one turn, and pause reading while there is too much unparsed data."""
        if self.is_parsing:
            return
        self.is_parsing = True
        allowance = _EVENTS
        try:
            while allowance and self._can_parse and self._parse_event():
                allowance -= 1
        except Invalid:
            self._refuse()
        finally:
            self.is_parsing = False
        if self.transport.is_closing():
            return
        if not allowance and self.next_turn is None and self._can_parse:
            self.next_turn = self.loop.call_soon(self._on_turn)
        if self.half_closed and not self._busy and self.next_turn is None:
            self.transport.close()
            return
        if not self._may_follow:
            self._discard_unparsed()
        self.transport.set_waiting(self.paused or self.next_turn is not None or self.parser.unparsed > _AHEAD)

    @property
    def default_lines(self) -> str:
        """The header lines of every response."""
        return self.pool.default_lines(self.state.default_headers)

    @property
    def unfinished(self) -> bool:
        """Whether the peer may still send the rest of the request."""
        return self.parser.in_body or self.failed

    @property
    def has_unread(self) -> bool:
        """Whether the peer may still send the rest of the request, or has sent what was not parsed."""
        return self.unfinished or self.has_discarded or self.parser.has_data

    def read_body(self) -> None:
        """Read the body of the current request."""
        self.paused = False
        if self.next_turn is None:
            self.parse()

    def take_body(self) -> bytes:
        """Return the body of the current request, which has arrived. Raises Invalid."""
        assert self.exchange is not None
        self.paused, parts = False, []
        while isinstance(event := self.parser.next_event(), bytes):
            parts.append(event)
        if event is not END:
            raise Invalid("the body is not complete")
        self.exchange.end_input()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def discard_input(self) -> None:
        """Discard what the peer sends from now on, and make the current response the last one.

        For a response that need not end: data that waits behind it would hide that the peer has closed the connection.
        """
        assert self.exchange is not None
        self.exchange.keeps_alive, self.discards_input, self.paused = False, True, False
        self._discard_unparsed()
        self.transport.set_waiting(False)

    def release_when_sent(self, budget: Budget, size: int) -> None:
        """Release ``size`` bytes of ``budget`` as soon as the system has accepted most of the written data."""
        self.unsent.append((budget, size))
        if not self.write_paused:
            self._release_sent()

    def pause_writing(self) -> None:
        """Let responses wait, because the peer does not read."""
        self.write_paused = True
        self.writable.clear()

    def resume_writing(self) -> None:
        """Continue writing, after the peer has read most of the written data."""
        self.write_paused = False
        self.writable.set()
        self._release_sent()

    def abort(self) -> None:
        """Close the connection without completing the response."""
        if self.exchange is not None:
            self.exchange.disconnected = True
        self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection after its current response."""
        if self._busy:
            assert self.exchange is not None
            self.exchange.keeps_alive = False
        else:
            self.transport.close()

    def eof_received(self) -> bool:
        """Keep the connection open for the response, if the request is complete. Called again after a pause."""
        is_first, self.half_closed = not self.half_closed, True
        if self.transport.is_closing() or not self._is_answering:
            return False
        if is_first and self.on_half_close is not None:
            self.on_half_close()
        return True

    def on_response_complete(self) -> None:
        """Wait for the next request, if the peer can send one."""
        self.state.total_requests += 1
        assert self.exchange is not None
        if not self.exchange.keeps_alive:
            self.transport.close()
        if not self.transport.is_closing():
            self.transport.set_full(False)
            if self.next_turn is None:
                self.parse()  # the next request may have arrived
            if self._busy:
                return
        self.on_half_close = None
        if self.transport.is_closing():
            self.pool.add_idle(self)
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the resources of the connection."""
        self.state.connections.discard(self)
        if self._busy and self.exchange is not None:
            self.exchange.disconnect()
        for timer in (self.timer, self.next_turn, self.transport.timer):
            if timer is not None:
                timer.cancel()
        self.on_half_close = None
        self.resume_writing()
        self.pool.remove(self)
        self.parser.close()

    @property
    def _busy(self) -> bool:
        return self.exchange is not None and not self.exchange.complete

    @property
    def _is_answering(self) -> bool:
        """Whether a request has arrived as a whole, and its response is not complete."""
        return self.exchange is not None and not (self.exchange.complete or self.exchange.more_body)

    @property
    def _may_follow(self) -> bool:
        """Whether the peer may send more: the rest of a request, or another one."""
        if self.discards_input:
            return False
        return self.exchange is None or self.exchange.keeps_alive or self.parser.in_body

    @property
    def _can_parse(self) -> bool:
        """Whether to parse on: not before a body is wanted, nor the next request before the response is complete."""
        if self.paused or self.transport.is_closing():
            return False
        return self.parser.in_body or not self._busy

    def _discard_unparsed(self) -> None:
        self.has_discarded |= self.parser.has_data
        self.parser.discard()

    def _parse_event(self) -> bool:
        """Parse and handle the next event. Return False if more data is needed. Raises Invalid."""
        event = self.parser.next_event()
        if event is None:
            return False
        if isinstance(event, Head):
            self._on_head(event)
            return True
        assert self.exchange is not None
        if isinstance(event, bytes):
            self.exchange.body += event
            self.exchange.news.set()
            if len(self.exchange.body) > _MAX_BODY:
                self.transport.set_full(True)
        else:
            self.exchange.end_input()
        return True

    def _on_head(self, head: Head) -> None:
        """Answer a request at once, or in a task. Raises Invalid."""
        self.deadline = None
        self.pool.idle.pop(self, None)
        self.on_half_close = None
        self.exchange = exchange = Exchange(self, head)
        path, _, query = head.target.partition("?")
        if "%" in path:
            path = urllib.parse.unquote(path)
        request = Request(head.verb, path, head.headers, b"", query, self.peer)
        self.paused = self.parser.left != 0
        if not self.paused:
            self.take_body()
        if self.parser.has_whole_body and not self.write_paused and self.application.can_answer_at_once(request):
            self._answer_at_once(request, exchange)
        else:
            self._run(exchange, self.application.answer(request, exchange.receive, exchange.send, self))

    def _answer_at_once(self, request: Request, exchange: Exchange) -> None:
        """Answer a request that has arrived. Continue in a task if the response grows. Raises Invalid."""
        try:
            response, counted = self.application.answer_at_once(request, self)
            if response.ended and not response.aborted:
                counted.close()
                self._send(exchange, response)
                return
        except Invalid:
            raise
        except Exception as error:
            exchange.fail(error)
            return
        complete = self.application.complete(request, response, counted, exchange.receive, exchange.send, self)
        self._run(exchange, complete)

    def _send(self, exchange: Exchange, response: Response) -> None:
        """Send a response that has ended."""
        headers, body, size = self.application.take(response, self)
        exchange.respond(response.status, headers, body)
        if response.budget is not None:
            self.release_when_sent(response.budget, size)

    def _run(self, exchange: Exchange, answer: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(exchange.run(answer))
        self.state.tasks.add(task)
        task.add_done_callback(self.state.tasks.discard)

    def _refuse(self) -> None:
        """Answer data that is not HTTP, and end the current request."""
        _logger.warning(_INVALID)
        self.failed = True
        started = self.exchange is not None and self.exchange.started and self._busy
        if self.exchange is not None and self._busy:
            self.exchange.disconnect()
        if not started:
            body = _INVALID.encode("ascii")
            headers = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\nconnection: close"
            self.transport.write(f"{_STATUS_LINES[400]}{headers}\r\n\r\n".encode("ascii") + body)
        self.transport.close()
        self.pool.add_idle(self)

    def _wait(self) -> None:
        """Wait for the next request until a timeout, or until the pool needs the connection for another client."""
        limit = self.pool.limits["request_seconds"]
        if self.exchange is not None and not self.parser.has_begun:
            limit = min(limit, _KEEP_ALIVE)
        self.waiting_since = self.loop.time()
        self._expect(self.waiting_since + limit)
        self.pool.add_idle(self)

    def _expect(self, deadline: float) -> None:
        """Close the connection at ``deadline``. A timer that comes earlier is not replaced."""
        self.deadline = deadline
        if self.timer is not None and self.timer.when() > deadline:
            self.timer.cancel()
            self.timer = None
        if self.timer is None:
            self.timer = self.loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        self.timer = None
        if self.deadline is None:
            return
        if self.deadline - self.loop.time() < _TICK:
            self.transport.close()
        else:
            self._expect(self.deadline)

    def _on_turn(self) -> None:
        self.next_turn = None
        if not self.transport.is_closing():
            self.parse()

    def _release_sent(self) -> None:
        for budget, size in self.unsent:
            budget.release(size)
        self.unsent.clear()


class Pool:
    """Accepts up to ``max_open`` connections. Beyond that, it closes the connection that was idle for longest.

    If none is idle, it accepts a few more, on which only probes are answered.
    """

    def __init__(self, limits: Limits, max_open: int, max_per_principal: int, log: Log) -> None:
        """``max_per_principal``: how many connections may handle requests of one principal at the same time."""
        self.limits = limits
        self.max_open = max_open
        self.max_per_principal = max_per_principal
        self.log = log
        self.busy: dict[Protocol, str] = {}  # the principals of current requests
        self.per_principal: Counter[str] = Counter()  # the number of `busy` connections
        self.idle: dict[Protocol, None] = {}  # without a request, the longest idle first
        self.closing: set[Protocol] = set()  # not counted in `open` any more
        self.shutting_down = False
        self.open = 0
        self.room = asyncio.Event()
        self.open_when_full = 0  # `open` at the last warning; 0 after half of these connections have ended
        self.connecting: set[asyncio.Task[Any]] = set()
        self._defaults: tuple[Headers, str] = ([], "")  # headers of every response, and their lines

    async def accept(self, bound: socket.socket, make: Callable[[], Protocol]) -> None:
        """Accept connections on ``bound``, which does not block, until cancelled. ``make`` creates their protocols."""
        loop = asyncio.get_running_loop()
        while True:
            for _ in range(_ACCEPTS):
                await self._make_room()
                try:
                    peer, _address = await loop.sock_accept(bound)
                except OSError as error:  # or the peer has closed the connection already
                    if error.errno in _EXHAUSTED:
                        self._log_full("descriptors_exhausted")
                        await asyncio.sleep(0 if self._close_idle() else _RETRY)
                    continue
                self._connect(loop, peer, make)
            await asyncio.sleep(0)

    def accept_waiting(self, bound: socket.socket, make: Callable[[], Protocol]) -> None:
        """Accept the connections that wait on ``bound``. Closing it would reset them."""
        with contextlib.suppress(OSError):  # no connection waits, or the system is out of resources
            while self.open < self.max_open:
                self._connect(asyncio.get_running_loop(), bound.accept()[0], make)

    def assign(self, protocol: Protocol, principal: str) -> None:
        """Record that ``protocol`` handles a request of ``principal``.

        Raises:
            ProtocolError: if the principal has too many connections, or all principals together have.
        """
        self._unassign(protocol)
        if protocol.is_extra and self.open > self.max_open:
            raise ProtocolError("connections_full", limit=self.max_open)
        if self.per_principal[principal] >= self.max_per_principal:
            raise ProtocolError("too_many_connections", limit=self.max_per_principal)
        self.busy[protocol] = principal
        self.per_principal[principal] += 1

    def default_lines(self, headers: Headers) -> str:
        """Return ``headers`` as lines. uvicorn replaces them every second."""
        if headers is not self._defaults[0]:
            lines = b"".join(b"%b: %b\r\n" % header for header in headers)
            self._defaults = headers, lines.decode("latin-1")
        return self._defaults[1]

    def add_idle(self, protocol: Protocol) -> None:
        """Record that ``protocol`` has no request, so that the pool may close its connection."""
        self._unassign(protocol)
        self.idle[protocol] = None
        self.room.set()

    def remove(self, protocol: Protocol) -> None:
        """Record that the connection of ``protocol`` has ended."""
        self._unassign(protocol)
        self.idle.pop(protocol, None)
        if protocol not in self.closing:
            self.open -= 1
        self.closing.discard(protocol)
        self.room.set()
        if self.open <= self.open_when_full // 2:
            self.open_when_full = 0

    def _unassign(self, protocol: Protocol) -> None:
        if (principal := self.busy.pop(protocol, None)) is not None:
            self.per_principal[principal] -= 1

    def _connect(self, loop: asyncio.AbstractEventLoop, peer: socket.socket, make: Callable[[], Protocol]) -> None:
        peer.setblocking(False)
        if peer.family != getattr(socket, "AF_UNIX", None):
            with contextlib.suppress(OSError):  # the peer has closed the connection
                # Otherwise the last segment of a response waits for the acknowledgement of the others (RFC 896).
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open += 1
        task = loop.create_task(loop.connect_accepted_socket(make, peer))
        self.connecting.add(task)
        task.add_done_callback(self.connecting.discard)

    async def _make_room(self) -> None:
        while self.open >= self.max_open:
            self._log_full("connections_full", limit=self.max_open)
            for _ in range(_TURNS):  # received data makes some idle connections busy
                await asyncio.sleep(0)
            if self.open >= self.max_open and not self._close_idle():
                if self.open < self.max_open + min(_EXTRA, self.max_open // _EXTRA):
                    return
                self.room.clear()
                await self.room.wait()

    def _close_idle(self) -> bool:
        """Close the connection that was idle for longest. Return False if none is idle."""
        if not self.idle:
            return False
        protocol = next(iter(self.idle))
        del self.idle[protocol]
        self.closing.add(protocol)
        self.open -= 1
        protocol.transport.abort()
        return True

    def _log_full(self, line: str, **fields: object) -> None:
        """Log ``line`` once until half of the open connections have ended."""
        if not self.open_when_full:
            self.open_when_full = self.open
            self.log.write(line, **fields)
            self.log.flush()
