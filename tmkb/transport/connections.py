"""HTTP connections within limits: how many are accepted, how long they may take, and how much each may make us do.

uvicorn parses requests with h11 and writes responses. What is here decides when it may read and parse, and when a
connection ends.
Specification: RFC 9112 (HTTP/1.1).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import traceback
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tmkb.errors import ProtocolError

if TYPE_CHECKING:
    from tmkb.protocol.budget import Budget
    from tmkb.schema.model import Limits
    from tmkb.server.log import Log

_BUFFER = memoryview(bytearray(32768))  # every connection reads into it; what it holds is copied at once
_EVENTS = 16  # parts of requests that are parsed before other connections have their turn
_ACCEPTS = 32  # connections that are accepted before other connections have their turn
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TURNS = 4  # of the event loop, after which a new connection has been read from
_RETRY = 0.1  # seconds until accepting is tried again after the system had no room


class Parser(h11.Connection):
    """An HTTP parser that stops after the head of each request, and whenever its allowance is used up."""

    held = False  # after a head, until the application knows whether it wants the body
    allowance = 0  # events that may still be parsed in this turn

    def next_event(self) -> Any:
        """Parse the next part of a request; NEED_DATA if the parser has to stop."""
        if self.held or not self.allowance:
            return h11.NEED_DATA
        self.allowance -= 1
        event = super().next_event()
        self.held = isinstance(event, h11.Request)
        return event

    @property
    def unfinished(self) -> bool:
        """Whether the peer may still be sending a request that is not read any more."""
        return self.held or self.their_state in (h11.SEND_BODY, h11.ERROR)


class Transport:
    """A transport with two reasons to pause reading, which closes in stages where the peer may still be sending.

    To close at once would reset the connection, and the peer could lose the response (RFC 9112, section 9.6).
    """

    def __init__(self, transport: asyncio.Transport, parser: Parser, pool: Pool) -> None:
        self._transport = transport
        self._parser = parser
        self._pool = pool
        self._limits = pool.limits
        self._paused = self._held = self._lingering = False
        self.timer: asyncio.TimerHandle | None = None  # ends a close that takes too long

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def pause_reading(self) -> None:
        """Pause for uvicorn, whose application has enough of the body."""
        self._paused = True
        self._read()

    def resume_reading(self) -> None:
        """End the pause of `pause_reading`."""
        self._paused = False
        self._read()

    def hold(self, held: bool) -> None:
        """Pause, or go on, for the parser, which has enough to parse."""
        self._held = held
        self._read()

    def is_closing(self) -> bool:
        """Whether no more requests are read."""
        return self._lingering or self._transport.is_closing()

    def close(self) -> None:
        """Send what is written and close; what the peer still sends is discarded for a while."""
        if self.is_closing():
            return
        if not self._parser.unfinished or self._pool.ending:
            self._transport.close()
            if unsent := self._transport.get_write_buffer_size():
                self._expect_progress(unsent)
            return
        self._lingering = True
        self.timer = asyncio.get_running_loop().call_later(self._limits["linger_seconds"], self._transport.abort)
        self._paused = self._held = False
        self._read()
        try:
            self._transport.write_eof()
        except OSError:  # the peer has gone
            self._transport.abort()

    def _expect_progress(self, unsent: int) -> None:
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(self._limits["request_seconds"], self._check_progress, unsent)

    def _check_progress(self, before: int) -> None:
        """Abort if the peer has read nothing since there were ``before`` unsent bytes."""
        unsent = self._transport.get_write_buffer_size()
        if unsent < before:
            self._expect_progress(unsent)
        else:
            self._transport.abort()

    def _read(self) -> None:
        if self._paused or self._held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


class Protocol(H11Protocol, asyncio.BufferedProtocol):
    """One connection. Its parser takes turns with those of other connections, and bodies are read on demand."""

    transport: Transport  # type: ignore[assignment]
    conn: Parser

    def __init__(self, pool: Pool, **options: Any) -> None:
        super().__init__(**options)
        self.conn = Parser(h11.SERVER, pool.limits["head_bytes"])
        self.pool = pool
        self.patience: asyncio.TimerHandle | None = None
        self.turn: asyncio.Handle | None = None  # the next of the parser
        self.half_closed = False  # the peer will not send more
        self.on_half_close: Callable[[], None] | None = None
        self.unsent: list[tuple[Budget, int]] = []  # bytes that a budget counts until the peer has read them

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        super().connection_made(Transport(transport, self.conn, self.pool))  # type: ignore[arg-type]
        self._wait()

    def occupy(self, principal: str) -> None:
        """Count the connection against the share of ``principal``. Raises ProtocolError if that is used up."""
        self.pool.occupy(self, principal)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Give the memory to read into. It is small, so that an unparsed head is, too."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what was read, unless the connection is about to close."""
        if not self.transport.is_closing():
            self.data_received(bytes(_BUFFER[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Parse ``data``, or leave it for the parser's next turn."""
        self._unset_keepalive_if_required()
        self.conn.receive_data(data)
        if self.turn is None:
            self.handle_events()

    def handle_events(self) -> None:
        """Parse for one turn. Reading pauses while there is something left to parse."""
        before = self.cycle
        self.conn.allowance = _EVENTS
        super().handle_events()
        if self.cycle is not before:
            self._begin()
        left = not self.conn.allowance and not self.conn.held and not self.transport.is_closing()
        if left and self.turn is None:
            self.turn = self.loop.call_soon(self._continue)
        if not self.transport.is_closing():
            self.transport.hold(self.conn.held or self.turn is not None)

    @property
    def unfinished(self) -> bool:
        """Whether the request has not been read to its end."""
        return bool(self.conn.unfinished)

    def read_body(self) -> None:
        """Read the body of the current request, whose head the application has accepted."""
        self.conn.held = False
        if self.turn is None:
            self.handle_events()

    def release_when_sent(self, budget: Budget, size: int) -> None:
        """Release ``size`` bytes of ``budget`` as soon as the system has taken most of what was written."""
        self.unsent.append((budget, size))
        if not self.flow.write_paused:
            self._release_sent()

    def resume_writing(self) -> None:
        """Go on writing, because the peer has read most of what was written."""
        super().resume_writing()
        self._release_sent()

    def abandon(self) -> None:
        """Disconnect a client whose response cannot be completed."""
        self.cycle.disconnected = True
        self.transport.abort()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection while the response to a complete request is being made."""
        self.half_closed = True
        if self.transport.is_closing() or not self._busy or self.cycle.more_body:
            return False
        if self.on_half_close is not None:
            self.on_half_close()
        return True

    def on_response_complete(self) -> None:
        """Go on with the next request, if the peer can send one."""
        super().on_response_complete()
        if self._busy:
            return
        self._forget()
        if self.transport.is_closing():
            self.pool.wait(self)
        elif self.half_closed:
            self.transport.close()
        else:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP. The application gets no more of the request."""
        if self._busy:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)
        self.pool.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all that belongs to the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self.patience, self.turn, self.transport.timer):
            if timer is not None:
                timer.cancel()
        self._forget()
        self._release_sent()
        self.pool.remove(self)

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin(self) -> None:
        """A request has begun: give the application a way to this connection."""
        if self.patience is not None:
            self.patience.cancel()
        self.pool.idle.pop(self, None)
        self.on_half_close = None
        self.scope["state"]["connection"] = self

    def _wait(self) -> None:
        """Wait for the next request, for a limited time, and as long as the connection is not needed for another."""
        if self.patience is not None:
            self.patience.cancel()
        self.patience = self.loop.call_later(self.pool.limits["request_seconds"], self.transport.close)
        self.pool.wait(self)

    def _continue(self) -> None:
        self.turn = None
        if not self.transport.is_closing():
            self.handle_events()

    def _release_sent(self) -> None:
        for budget, size in self.unsent:
            budget.release(size)
        self.unsent.clear()

    def _forget(self) -> None:
        """Drop the head of the last request, which can be large."""
        self.scope = self.headers = None  # type: ignore[assignment]
        self.on_half_close = None
        if self.cycle is not None:
            self.cycle.scope = {}  # type: ignore[typeddict-item]


class Pool:
    """Accepts connections, at most ``most`` at a time. When all are taken, the one idle for longest makes room."""

    def __init__(self, limits: Limits, most: int, share: int, log: Log) -> None:
        """``share``: how many of the connections may have a request of one principal at a time."""
        self.limits = limits
        self.most = most
        self.share = share
        self.log = log
        self.busy: dict[Protocol, str] = {}  # that have a request, and its principal
        self.shares: Counter[str] = Counter()  # of `busy`, by principal
        self.ending = False  # the server is about to end: it waits for no peer
        self.idle: dict[Protocol, None] = {}  # that wait for a request, in the order in which they began to
        self.closing: set[Protocol] = set()  # not counted in `open` any more
        self.open = 0
        self.room = asyncio.Event()
        self.full = 0  # connections that were open when it was logged that there is no room; 0 when there is
        self.adopting: set[asyncio.Task[Any]] = set()

    async def accept(self, bound: socket.socket, make: Callable[[], Protocol]) -> None:
        """Accept connections on ``bound`` until cancelled; ``make`` gives each its protocol."""
        loop = asyncio.get_running_loop()
        bound.setblocking(False)
        while True:
            for _ in range(_ACCEPTS):
                await self._make_room()
                try:
                    peer, _address = await loop.sock_accept(bound)
                except OSError as error:  # also: the peer has gone before it was accepted
                    if error.errno in _EXHAUSTED:
                        self._log_full("descriptors_exhausted")
                        await asyncio.sleep(0 if self._close_idle() else _RETRY)
                    continue
                self._adopt(loop, peer, make)
            await asyncio.sleep(0)

    def occupy(self, protocol: Protocol, principal: str) -> None:
        """Note that ``protocol`` has a request of ``principal``.

        Raises:
            ProtocolError: if the principal has too many connections.
        """
        self._vacate(protocol)  # of its last request
        if self.shares[principal] >= self.share:
            raise ProtocolError("too_many_connections", limit=self.share)
        self.busy[protocol] = principal
        self.shares[principal] += 1

    def wait(self, protocol: Protocol) -> None:
        """Note that ``protocol`` waits for a request, or for its end, so that its connection can make room."""
        self._vacate(protocol)
        self.idle[protocol] = None
        self.room.set()

    def remove(self, protocol: Protocol) -> None:
        """Note that the connection of ``protocol`` has ended."""
        self._vacate(protocol)
        self.idle.pop(protocol, None)
        if protocol not in self.closing:
            self.open -= 1
        self.closing.discard(protocol)
        self.room.set()
        if self.open <= self.full // 2:
            self.full = 0

    def _vacate(self, protocol: Protocol) -> None:
        if (principal := self.busy.pop(protocol, None)) is not None:
            self.shares[principal] -= 1

    def _adopt(self, loop: asyncio.AbstractEventLoop, peer: socket.socket, make: Callable[[], Protocol]) -> None:
        peer.setblocking(False)
        if peer.family != getattr(socket, "AF_UNIX", None):
            with contextlib.suppress(OSError):  # the peer has gone
                # Without it the last segment of a response waits until the peer has acknowledged the others (RFC 896).
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open += 1
        task = loop.create_task(loop.connect_accepted_socket(make, peer))
        self.adopting.add(task)
        task.add_done_callback(self.adopting.discard)

    async def _make_room(self) -> None:
        while self.open >= self.most:
            self._log_full("connections_full", limit=self.most)
            for _ in range(_TURNS):  # what has been received makes some of them busy
                await asyncio.sleep(0)
            if self.open >= self.most and not self._close_idle():
                self.room.clear()
                await self.room.wait()

    def _close_idle(self) -> bool:
        """Close the connection that has waited longest for a request; False if none does."""
        if not self.idle:
            return False
        protocol = next(iter(self.idle))
        del self.idle[protocol]
        self.closing.add(protocol)
        self.open -= 1
        protocol.transport.abort()
        return True

    def _log_full(self, line: str, **fields: object) -> None:
        """Log ``line`` once, until half of the connections have ended."""
        if not self.full:
            self.full = self.open
            self.log.write(line, **fields)
            self.log.flush()


class LogHandler(logging.Handler):
    """Passes what uvicorn and asyncio log to our log, which drops lines rather than wait for their reader."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record`` as one line: at level debug what peers cause by bad requests, the rest as an error."""
        text = "; ".join(line.strip() for line in record.getMessage().splitlines() if line.strip())
        if record.exc_info and record.exc_info[1] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}{place}"
        self.log.write("http_failed" if record.levelno >= logging.ERROR else "http_warning", text=text)
        self.log.flush()

    def install(self) -> None:
        """Take over the loggers of uvicorn and asyncio, instead of handlers that they have."""
        for name in ("uvicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [self], False
            logger.setLevel(logging.WARNING)
