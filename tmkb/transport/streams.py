"""Incremental HTTP responses, and event streams that a client can resume.

Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget, Entry
from tmkb.protocol.caller import ANONYMOUS

if TYPE_CHECKING:
    from tmkb.transport.quotas import Account

JSON = {"content-type": "application/json"}
_OVERHEAD = 512  # bytes of memory for an event, without its text
_SMALL = 512  # bytes; a chunk of this size is sent even if the budget is used up: errors, keep-alive comments
EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


async def _settled() -> None:
    pass


class Response:
    """An HTTP response. Its headers are fixed when it has `started`; its body grows until it has `ended`."""

    def __init__(self, max_unsent: int, headers: Mapping[str, str]) -> None:
        """Create a response.

        Args:
            max_unsent: bytes of the body that may wait for the client.
            headers: in addition to those of `complete` and `start_stream`.
        """
        self.max_unsent = max_unsent
        self.on_change: Callable[[], None] = lambda: None
        self.settle: Callable[[], Awaitable[None]] = _settled  # returns when the chunks so far may be sent
        self.status = 202
        self.base_headers = self.headers = dict(headers)
        self.started = self.ended = self.aborted = False
        self.chunks: list[bytes] = []
        self.unsent = 0  # bytes of `chunks`
        self.stream: Stream | None = None
        self.budget: Budget | None = None  # for `chunks`
        self.held = 0  # bytes of `budget`
        self.caller = ANONYMOUS
        self.account: Account | None = None  # that the body counts for

    def fits(self, size: int) -> bool:
        """Return whether the budget has room for ``size`` bytes of the body. A small number always fits."""
        return self.budget is None or size <= _SMALL or self.budget.fits(size)

    def complete(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Set the whole response. Discards unsent chunks."""
        self.take()
        self.ended = False
        length = {} if status == 204 else {"content-length": str(len(body))}  # RFC 9110, section 8.6
        self._start(status, {**(headers or {}), **length})
        self._append(body)
        self.end()

    def start_stream(self) -> None:
        """Start an event stream."""
        self._start(200, EVENTS)

    def write(self, chunk: bytes) -> None:
        """Append to the body. Aborts the response if the client reads too slowly."""
        if (self.unsent and self.unsent + len(chunk) > self.max_unsent) or not self.fits(len(chunk)):
            self.abort()
        if not self.ended:
            self._append(chunk)

    def abort(self) -> None:
        """Drop the unsent part of the body, and close the connection."""
        self.aborted = True
        self.take()
        self.end()

    def take(self) -> bytes:
        """Remove and return the unsent part of the body."""
        body = b"".join(self.chunks)
        self.chunks.clear()
        self.unsent = 0
        if self.budget is not None:
            self.budget.release(self.held)
            self.held = 0
        return body

    def end(self) -> None:
        """Complete the body."""
        self.ended = True
        self.on_change()

    def _append(self, chunk: bytes) -> None:
        if not chunk:
            return
        if self.budget is not None:
            with contextlib.suppress(ProtocolError):  # a small chunk, see `fits`
                self.budget.reserve(len(chunk))
                self.held += len(chunk)
        self.chunks.append(chunk)
        self.unsent += len(chunk)
        self.on_change()

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.started = status, True
        self.headers = {**self.base_headers, **headers}
        self.on_change()


class Stream:
    """A sequence of messages for one client. It can continue in a later response.

    If the client's revision supports it, events have ids, which consist of ``number`` and a count.
    """

    def __init__(self, number: int, resumable: bool, primes: bool, max_stored: int, budget: Budget) -> None:
        """Create a stream that stores up to ``max_stored`` bytes of events, within ``budget``.

        ``resumable``: whether events have ids. ``primes``: whether the first event has an id and no message.
        """
        self.number = number
        self.resumable = resumable
        self.primes = resumable and primes
        self.max_stored = max_stored
        self.budget = budget
        self.stored: deque[tuple[int, bytes, Entry]] = deque()
        self.stored_bytes = 0
        self.last_dropped = 0  # count of the newest event that is not stored any more
        self.last = 0  # count of the newest event
        self.last_sent = 0  # count of the newest event in a response
        self.ended = False
        self.response: Response | None = None

    def attach(self, response: Response, after: int | None = None) -> None:
        """Continue in ``response`` with the events after the event ``after``, or with the unsent events."""
        if self.response is not None:
            self.response.end()
        self.response, response.stream = response, self
        if after is not None or self.stored:
            self._start(response)
        start = self.last_sent if after is None else after
        for count, event, _ in [*self.stored]:
            if count > start:
                self._send(response, count, event)
        if not self.resumable:
            self.clear()
        if self.ended:
            response.end()

    def restore(self, last: int, last_sent: int, last_dropped: int, events: Iterable[tuple[int, bytes]]) -> None:
        """Store the ``events`` of a stream that another process has begun, oldest first; the others are counts."""
        for self.last, event in events:
            self._store(event)
        self.last, self.last_sent = max(last, 1 if self.primes else 0), last_sent
        self.last_dropped = max(last_dropped, self.last_dropped)

    def detach(self) -> None:
        """Note that the response has ended."""
        self.response = None

    def is_lost_after(self, count: int) -> bool:
        """Return whether the stream has ended with an event after ``count`` that is not stored any more."""
        return self.ended and self.last_dropped == self.last > count

    def clear(self) -> None:
        """Drop all stored events."""
        while self.stored:
            self._drop_oldest()

    def add(self, message: bytes, replacement: Callable[[ProtocolError], bytes] | None = None) -> None:
        """Add an event, and store it if a client may fetch it later.

        Args:
            replacement: returns the message to store instead of one that is too large, from an error.
        """
        self.last += 1
        event = self._event(message)
        if self.resumable or self.response is None:
            too_large = len(event) > self.max_stored or len(event) + _OVERHEAD > self.budget.capacity
            if too_large and replacement is not None:
                error = ProtocolError("response_not_kept", size=len(message), limit=self.max_stored)
                self._store(self._event(replacement(error)))
            else:
                self._store(event)
        if self.response is not None:
            self._start(self.response)
            self._send(self.response, self.last, event)

    def respond(self, message: bytes, status: int, replacement: Callable[[ProtocolError], bytes] | None = None) -> None:
        """Send the last message. If it is also the first one, it is the whole response. ``replacement``: see `add`."""
        if self.response is not None and not self.response.started:
            self.response.complete(status, JSON, message)
        else:
            self.add(message, replacement)
        self.end()

    def release(self, milliseconds: int) -> None:
        """End the response, if the client can resume; it reconnects after ``milliseconds``."""
        if self.response is not None and self.primes:
            self._start(self.response)
            self.response.write(b"retry: %d\n\n" % milliseconds)
            self.response.end()
            self.detach()

    def keep_alive(self) -> None:
        """Send a comment, so that no proxy ends an idle connection."""
        if self.response is not None:
            self._start(self.response)
            self.response.write(b":\n\n")

    def end(self) -> None:
        """End the stream and its response."""
        self.ended = True
        if self.response is not None:
            self._start(self.response)
            self.response.end()

    def _start(self, response: Response) -> None:
        if response.started:
            return
        response.start_stream()
        if self.primes and not self.last:
            self.last = self.last_sent = 1
            response.write(self._event(b""))

    def _store(self, event: bytes) -> None:
        entry = Entry(len(event) + _OVERHEAD, self._on_dropped)
        self.stored.append((self.last, event, entry))
        self.stored_bytes += len(event)
        self.budget.add(entry)
        while self.stored_bytes > self.max_stored:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self.budget.remove(self.stored[0][2])
        self._on_dropped()

    def _on_dropped(self) -> None:
        self.last_dropped, event, _ = self.stored.popleft()
        self.stored_bytes -= len(event)

    def _send(self, response: Response, count: int, event: bytes) -> None:
        self.last_sent = count
        response.write(event)

    def _event(self, message: bytes) -> bytes:
        id_ = b"id: %d-%d\n" % (self.number, self.last) if self.resumable else b""
        return b"%bdata: %b\n\n" % (id_, message)
