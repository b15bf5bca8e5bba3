"""Limits for HTTP connections: their number, their timeouts, and the work for each.

uvicorn parses requests with h11 and writes responses. This module decides when it reads and parses, and when a
connection ends.
Specification: RFC 9112 (HTTP/1.1).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tmkb.errors import ProtocolError

if TYPE_CHECKING:
    from tmkb.protocol.budget import Budget
    from tmkb.schema.model import Limits
    from tmkb.server.log import Log

_BUFFER = memoryview(bytearray(32768))  # shared by all connections, which copy the data at once
_EVENTS = 16  # that a connection parses per turn of the event loop
_ACCEPTS = 32  # connections to accept per turn of the event loop
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TURNS = 4  # of the event loop until data of a new connection is read
_EXTRA = 16  # connections beyond the limit, or a sixteenth of the limit: they get answers to probes, and errors
_RETRY = 0.1  # seconds until the next accept after the system ran out of resources


class Parser(h11.Connection):
    """An HTTP parser that pauses after the head of each request, and when its allowance is used up."""

    paused = False  # after a head, until the application decides whether to read the body
    allowance = 0  # events left to parse in this turn

    def next_event(self) -> Any:
        """Parse and return the next event; return NEED_DATA during a pause."""
        if self.paused or not self.allowance:
            return h11.NEED_DATA
        self.allowance -= 1
        event = super().next_event()
        self.paused = isinstance(event, h11.Request)
        return event

    @property
    def unfinished(self) -> bool:
        """Whether the peer may still send the rest of a request."""
        return self.paused or self.their_state in (h11.SEND_BODY, h11.ERROR)


class Transport:
    """A transport that pauses reading for two reasons, and closes in stages if the peer may still send.

    Closing at once would reset the connection, and the peer could lose the response (RFC 9112, section 9.6).
    """

    def __init__(self, transport: asyncio.Transport, parser: Parser, pool: Pool) -> None:
        self._transport = transport
        self._parser = parser
        self._pool = pool
        self._limits = pool.limits
        self._paused_by_uvicorn = self._paused_by_parser = self._lingering = False
        self.timer: asyncio.TimerHandle | None = None  # limits the duration of a close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def pause_reading(self) -> None:
        """Pause because the application has not consumed the body yet."""
        self._paused_by_uvicorn = True
        self._update_reading()

    def resume_reading(self) -> None:
        """End the pause of `pause_reading`."""
        self._paused_by_uvicorn = False
        self._update_reading()

    def set_parser_pause(self, paused: bool) -> None:
        """Pause or resume because of unparsed data."""
        self._paused_by_parser = paused
        self._update_reading()

    def is_closing(self) -> bool:
        """Return whether no more requests are read."""
        return self._lingering or self._transport.is_closing()

    def close(self) -> None:
        """Send buffered data and close. For a while, discard data that the peer still sends."""
        if self.is_closing():
            return
        if not self._parser.unfinished or self._pool.shutting_down:
            self._transport.close()
            if unsent := self._transport.get_write_buffer_size():
                self._expect_progress(unsent)
            return
        self._lingering = True
        self.timer = asyncio.get_running_loop().call_later(self._limits["linger_seconds"], self._transport.abort)
        self._paused_by_uvicorn = self._paused_by_parser = False
        self._update_reading()
        try:
            self._transport.write_eof()
        except OSError:  # the peer has closed the connection
            self._transport.abort()

    def _expect_progress(self, unsent: int) -> None:
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(self._limits["request_seconds"], self._check_progress, unsent)

    def _check_progress(self, before: int) -> None:
        """Abort if no fewer than ``before`` bytes are unsent, so that the peer has read nothing."""
        unsent = self._transport.get_write_buffer_size()
        if unsent < before:
            self._expect_progress(unsent)
        else:
            self._transport.abort()

    def _update_reading(self) -> None:
        if self._paused_by_uvicorn or self._paused_by_parser:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class Protocol(H11Protocol, asyncio.BufferedProtocol):
    """One connection. Connections parse in turns, and read bodies on demand."""

    transport: Transport  # type: ignore[assignment]
    conn: Parser

    def __init__(self, pool: Pool, **options: Any) -> None:
        super().__init__(**options)
        self.conn = Parser(h11.SERVER, pool.limits["head_bytes"])
        self.pool = pool
        self.request_timer: asyncio.TimerHandle | None = None
        self.next_turn: asyncio.Handle | None = None  # of the parser
        self.is_extra = False  # beyond the limit
        self.half_closed = False  # the peer has closed its sending side
        self.on_half_close: Callable[[], None] | None = None
        self.unsent: list[tuple[Budget, int]] = []  # bytes that count against a budget until they are sent

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(Transport(transport, self.conn, self.pool))  # type: ignore[arg-type]
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
        """Return the buffer to read into. Its size bounds the size of an unparsed head."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the data in the buffer, unless the connection is closing."""
        if not self.transport.is_closing():
            self.data_received(bytes(_BUFFER[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Parse ``data`` now, or in the next turn of the parser."""
        self._unset_keepalive_if_required()
        self.conn.receive_data(data)
        if self.next_turn is None:
            self.handle_events()

    def handle_events(self) -> None:
        """Parse for one turn, and pause reading while there is unparsed data."""
        before = self.cycle
        self.conn.allowance = _EVENTS
        super().handle_events()
        if self.cycle is not before:
            self._on_request()
        unparsed = not self.conn.allowance and not self.conn.paused and not self.transport.is_closing()
        if unparsed and self.next_turn is None:
            self.next_turn = self.loop.call_soon(self._on_turn)
        if not self.transport.is_closing():
            self.transport.set_parser_pause(self.conn.paused or self.next_turn is not None)

    @property
    def unfinished(self) -> bool:
        """Whether the peer may still send the rest of the request."""
        return bool(self.conn.unfinished)

    def read_body(self) -> None:
        """Read the body of the current request."""
        self.conn.paused = False
        if self.next_turn is None:
            self.handle_events()

    def release_when_sent(self, budget: Budget, size: int) -> None:
        """Release ``size`` bytes of ``budget`` as soon as the system has accepted most of the written data."""
        self.unsent.append((budget, size))
        if not self.flow.write_paused:
            self._release_sent()

    def resume_writing(self) -> None:
        """Continue writing, after the peer has read most of the written data."""
        super().resume_writing()
        self._release_sent()

    def abort(self) -> None:
        """Close the connection without completing the response."""
        self.cycle.disconnected = True
        self.transport.abort()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the response, if the request is complete."""
        self.half_closed = True
        if self.transport.is_closing() or not self._busy or self.cycle.more_body:
            return False
        if self.on_half_close is not None:
            self.on_half_close()
        return True

    def on_response_complete(self) -> None:
        """Wait for the next request, if the peer can send one."""
        super().on_response_complete()
        if self._busy:
            return
        self._clear_request()
        if self.transport.is_closing():
            self.pool.add_idle(self)
        elif self.half_closed:
            self.transport.close()
        else:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer data that is not HTTP, and end the current request."""
        if self._busy:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)
        self.pool.add_idle(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the resources of the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self.request_timer, self.next_turn, self.transport.timer):
            if timer is not None:
                timer.cancel()
        self._clear_request()
        self._release_sent()
        self.pool.remove(self)

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _on_request(self) -> None:
        """Give the application access to this connection."""
        if self.request_timer is not None:
            self.request_timer.cancel()
        self.pool.idle.pop(self, None)
        self.on_half_close = None
        self.scope["state"]["connection"] = self

    def _wait(self) -> None:
        """Wait for the next request until a timeout, or until the pool needs the connection for another client."""
        if self.request_timer is not None:
            self.request_timer.cancel()
        self.request_timer = self.loop.call_later(self.pool.limits["request_seconds"], self.transport.close)
        self.pool.add_idle(self)

    def _on_turn(self) -> None:
        self.next_turn = None
        if not self.transport.is_closing():
            self.handle_events()

    def _release_sent(self) -> None:
        for budget, size in self.unsent:
            budget.release(size)
        self.unsent.clear()

    def _clear_request(self) -> None:
        """Drop the headers of the last request, which can be large."""
        self.scope = self.headers = None  # type: ignore[assignment]
        self.on_half_close = None
        if self.cycle is not None:
            self.cycle.scope = {}  # type: ignore[typeddict-item]


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
