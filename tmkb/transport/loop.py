"""The parts that both loops over stdio share: the connection, signals, and when to read, answer and stop."""

from __future__ import annotations

import time

from tmkb.protocol.effects import Disconnect, Send
from tmkb.stdlib import deque, signal
from tmkb.transport import framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Protocol, Self

    from tmkb.protocol.effects import Sent
    from tmkb.transport.engine import Engine
    from tmkb.transport.hook import Hook

    class Updates(Protocol):
        """Reloaded snapshots, which arrive as bytes on the descriptor `fd`."""

        fd: int
        hook: Hook | None  # receives webhooks, over HTTP

        def feed(self, chunk: bytes) -> list[Sent]:
            """Apply the update in ``chunk``, and return the effects; an empty chunk is the end."""

    class Writer(Protocol):
        """Writes output in the background."""

        waiting_bytes: int
        written: int  # bytes

        def put(self, data: bytes) -> None:
            """Queue ``data``; never blocks."""


CHUNK = 65536  # bytes of one read
CHECK_INTERVAL = 0.5  # seconds between checks for events that wake no loop
_GRACE = 1.0  # seconds without reading after which a signal ends the server
_OPERATION_GRACE = 5.0  # seconds for operations after the end of the input


class Conversation:
    """One connection to the runtime: bytes of requests in, bytes of responses out."""

    def __init__(self, runtime: Engine, updates: Updates | None) -> None:
        limits = runtime.spec["server"]["limits"]
        self.runtime = runtime
        self.updates = updates
        self.connection = runtime.connect()
        self.lines = framing.Lines(limits["message_bytes"])
        self.max_unsent = limits["backlog_bytes"]
        self.unhandled: deque[bytes | None] = deque()  # lines
        self.started = False
        self.ended = False  # no more input
        self.disconnected = False  # the output ends after the messages so far
        self.deadline: float | None = None  # for operations, after the end of the input

    def feed(self, chunk: bytes) -> None:
        """Add input for `respond`. An empty chunk is the end of the input."""
        self.started = True
        self.unhandled += self.lines.feed(chunk) if chunk else self.lines.finish()
        self.ended = not chunk

    @property
    def unfinished(self) -> bool:
        """Whether `respond` has work to do."""
        return bool(self.unhandled) or (self.ended and self.deadline is None)

    def respond(self, room: int) -> bytes:
        """Handle lines until the responses fill ``room`` bytes. After the last line, end the connection."""
        output: list[bytes] = []
        while self.unhandled and room > 0:
            line = self.unhandled.popleft()
            if line is None:
                sent = self.runtime.handle_too_large(self.connection)
            else:
                sent = self.runtime.handle(self.connection, line)
            output.append(self._output(sent))
            room -= len(output[-1])
        if self.ended and self.deadline is None and not self.unhandled:
            self.deadline = time.monotonic() + _OPERATION_GRACE
            output.append(_lines(self.runtime.end(self.connection)))
        return b"".join(output)

    def update(self, chunk: bytes) -> bytes:
        """Apply a chunk of updates, and return the notifications."""
        assert self.updates is not None
        notifications = _lines(self.updates.feed(chunk))
        if not chunk:
            self.updates = None
        limits = self.runtime.spec["server"]["limits"]
        self.lines.limit, self.max_unsent = limits["message_bytes"], limits["backlog_bytes"]
        return notifications

    def due(self) -> float | None:
        """Return the seconds until the next operation resumes or is stopped, or None without operations."""
        due = self.runtime.due()
        if due is None or self.deadline is None:
            return due
        return min(due, max(0.0, self.deadline - time.monotonic()))

    def work(self) -> bytes:
        """Run the operations that are due, and return their messages."""
        stopped = self.runtime.stop() if self.deadline is not None and time.monotonic() >= self.deadline else []
        return self._output([*stopped, *self.runtime.work()])

    def _output(self, sent: list[Sent]) -> bytes:
        """Return the lines of ``sent``. After a disconnection, the rest of the input is dropped."""
        if any(isinstance(each, Disconnect) for each in sent):
            self.disconnected = self.ended = True
            self.unhandled.clear()
        return _lines(sent)


def _lines(sent: Iterable[Sent]) -> bytes:
    """Encode messages as lines. Other effects are for HTTP only."""
    return b"".join([framing.line(each.message) for each in sent if isinstance(each, Send)])


class Signals:
    """Records SIGTERM and SIGINT, so that the current message is handled first."""

    received = False

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self.record) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def record(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.received = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Loop:
    """The parts that both loops share."""

    def __init__(self, conversation: Conversation, signals: Signals, writer: Writer) -> None:
        self.conversation = conversation
        self.signals = signals
        self.writer = writer
        self.reading = True
        self.prepared = False
        self.deadline: float | None = None
        self.written_before_deadline = 0

    @property
    def _room(self) -> int:
        return self.conversation.max_unsent - self.writer.waiting_bytes

    @property
    def _active(self) -> bool:
        busy = self.conversation.unfinished or self.conversation.due() is not None
        return self.reading or busy or self.writer.waiting_bytes > 0

    def _feed(self, chunk: bytes) -> None:
        self.reading = bool(chunk)
        self.conversation.feed(chunk)

    def _update(self, chunk: bytes) -> None:
        self.writer.put(self.conversation.update(chunk))
        self.prepared = False

    def _prepare(self) -> None:
        """Load the modules for the first call. Call this when no input is waiting."""
        self.prepared = True
        self.conversation.runtime.warm_up()

    def _answer(self) -> None:
        if self._room > 0:
            self.writer.put(self.conversation.respond(self._room))
        if self._room > 0 and self.conversation.due() == 0:
            self.writer.put(self.conversation.work())
        if self.conversation.disconnected:
            self.reading = False

    def _check_signal(self) -> None:
        """End the input after a signal."""
        if self.signals.received and self.reading:
            self.reading = False
            self.conversation.ended = True

    def _is_stuck(self) -> bool:
        """Return whether, after a signal, only output is left and the client has stopped reading."""
        if not self.signals.received:
            return False
        blocked = self._room <= 0 or not (self.conversation.unfinished or self.conversation.due() is not None)
        if not blocked or self.deadline is None or self.writer.written != self.written_before_deadline:
            self.deadline = time.monotonic() + _GRACE
            self.written_before_deadline = self.writer.written
        return time.monotonic() >= self.deadline

    def _timeout(self) -> float | None:
        """Return the seconds until there is work to do without an event, or None."""
        if self._room > 0 and self.conversation.unfinished:
            return 0.0
        due = self.conversation.due() if self._room > 0 else None
        rest = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        return min((seconds for seconds in (due, rest) if seconds is not None), default=None)
