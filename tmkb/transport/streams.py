"""Responses as they grow: one JSON document, or a stream of events that a client may come back to.

Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping

from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget, Entry

JSON = {"content-type": "application/json"}
_OVERHEAD = 512  # bytes of memory that an event takes beside its text
_SMALL = 512  # bytes that are sent even without room: refusals, and signs of life
EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


class Answer:
    """One HTTP response. Its head is fixed when it has `begun`; its body comes in pieces until it has `ended`."""

    def __init__(self, wake: Callable[[], None], most: int, headers: Mapping[str, str]) -> None:
        """``wake`` is called whenever there is more; ``most``: bytes that may wait; ``headers`` that it has anyway."""
        self.wake = wake
        self.most = most
        self.status = 202
        self.own = self.headers = dict(headers)
        self.begun = self.ended = self.cut = False
        self.pieces: list[bytes] = []
        self.waiting = 0
        self.stream: Stream | None = None
        self.budget: Budget | None = None  # that `pieces` count against
        self.counted = 0  # bytes of `budget`

    def fits(self, size: int) -> bool:
        """Return whether ``size`` bytes of body are few, or the budget has room for them."""
        return self.budget is None or size <= _SMALL or self.budget.fits(size)

    def complete(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """All of it at once, instead of anything that has not been sent."""
        self.take()
        self.ended = False
        length = {} if status == 204 else {"content-length": str(len(body))}  # RFC 9110, section 8.6
        self._begin(status, {**(headers or {}), **length})
        self._append(body)
        self.end()

    def begin_stream(self) -> None:
        """What follows are events."""
        self._begin(200, EVENTS)

    def put(self, piece: bytes) -> None:
        """More of the body. A client that does not read what it has is cut off."""
        if (self.waiting and self.waiting + len(piece) > self.most) or not self.fits(len(piece)):
            self.cut = True
            self.take()
            self.end()
        if not self.ended:
            self._append(piece)

    def take(self) -> bytes:
        """What there is of the body since the last time."""
        taken = b"".join(self.pieces)
        self.pieces.clear()
        self.waiting = 0
        if self.budget is not None:
            self.budget.release(self.counted)
            self.counted = 0
        return taken

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self.wake()

    def _append(self, piece: bytes) -> None:
        if not piece:
            return
        if self.budget is not None:
            with contextlib.suppress(ProtocolError):  # no room, even for a refusal, which is small
                self.budget.reserve(len(piece))
                self.counted += len(piece)
        self.pieces.append(piece)
        self.waiting += len(piece)
        self.wake()

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.begun = status, True
        self.headers = {**self.own, **headers}
        self.wake()


class Stream:
    """Messages to one client in their order; what one response could not carry, a later one can.

    ``number`` and a count make the ids of events, where the client's revision knows them.
    """

    def __init__(self, number: int, resumes: bool, primes: bool, most: int, budget: Budget) -> None:
        """Keep at most ``most`` bytes of events, and what ``budget`` has room for."""
        self.number = number
        self.resumes = resumes
        self.primes = resumes and primes
        self.most = most
        self.budget = budget
        self.kept: deque[tuple[int, bytes, Entry]] = deque()
        self.size = 0
        self.forgotten = 0  # the count of the newest event that is kept no more
        self.last = 0  # the count of the newest event
        self.handed = 0  # of the newest that a response has
        self.ended = False
        self.answer: Answer | None = None

    def attach(self, answer: Answer, after: int | None = None) -> None:
        """Go on in ``answer`` with what came after the event ``after``, or with what no response has yet."""
        if self.answer is not None:
            self.answer.end()
        self.answer, answer.stream = answer, self
        if after is not None or self.kept:
            self._begin(answer)
        start = self.handed if after is None else after
        for count, event, _ in [*self.kept]:
            if count > start:
                self._hand(answer, count, event)
        if not self.resumes:
            self.clear()
        if self.ended:
            answer.end()

    def detach(self) -> None:
        """The response has gone."""
        self.answer = None

    def lacks(self, count: int) -> bool:
        """Whether the stream has ended, and its last event came after the event ``count`` and is kept no more."""
        return self.ended and self.forgotten == self.last > count

    def clear(self) -> None:
        """Keep no event any more."""
        while self.kept:
            self._drop_oldest()

    def add(self, message: bytes, instead: Callable[[ProtocolError], bytes] | None = None) -> None:
        """Add an event, and keep it where a client may ask for it later.

        Args:
            instead: makes the message, of an error, that is kept in place of one that is too large to keep.
        """
        self.last += 1
        event = self._event(message)
        if self.resumes or self.answer is None:
            too_large = len(event) > self.most or len(event) + _OVERHEAD > self.budget.capacity
            if too_large and instead is not None:
                error = ProtocolError("response_not_kept", size=len(message), limit=self.most)
                self._keep(self._event(instead(error)))
            else:
                self._keep(event)
        if self.answer is not None:
            self._begin(self.answer)
            self._hand(self.answer, self.last, event)

    def respond(self, message: bytes, status: int, instead: Callable[[ProtocolError], bytes] | None = None) -> None:
        """Send the last message; where nothing came before it, it is the whole response. ``instead``: see `add`."""
        if self.answer is not None and not self.answer.begun:
            self.answer.complete(status, JSON, message)
        else:
            self.add(message, instead)
        self.end()

    def release(self, milliseconds: int) -> None:
        """Let the client go, if it knows how to come back, which it does after so many milliseconds."""
        if self.answer is not None and self.primes:
            self._begin(self.answer)
            self.answer.put(b"retry: %d\n\n" % milliseconds)
            self.answer.end()
            self.detach()

    def still_there(self) -> None:
        """A sign of life, for all that stand between the client and us."""
        if self.answer is not None:
            self._begin(self.answer)
            self.answer.put(b":\n\n")

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        if self.answer is not None:
            self._begin(self.answer)
            self.answer.end()

    def _begin(self, answer: Answer) -> None:
        if answer.begun:
            return
        answer.begin_stream()
        if self.primes and not self.last:
            self.last = self.handed = 1
            answer.put(self._event(b""))

    def _keep(self, event: bytes) -> None:
        entry = Entry(len(event) + _OVERHEAD, self._forget_oldest)
        self.kept.append((self.last, event, entry))
        self.size += len(event)
        self.budget.add(entry)
        while self.size > self.most:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self.budget.remove(self.kept[0][2])
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        self.forgotten, event, _ = self.kept.popleft()
        self.size -= len(event)

    def _hand(self, answer: Answer, count: int, event: bytes) -> None:
        self.handed = count
        answer.put(event)

    def _event(self, message: bytes) -> bytes:
        id_ = b"id: %d-%d\n" % (self.number, self.last) if self.resumes else b""
        return b"%bdata: %b\n\n" % (id_, message)
