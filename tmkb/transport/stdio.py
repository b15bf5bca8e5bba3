"""Serve one connection over two file descriptors, one message per line.

A client may write many requests before it reads a response. Responses wait in memory up to a limit, then reading
pauses. The loop writes only as much as a polled pipe accepts without blocking. It does not set O_NONBLOCK: other
processes may share the descriptor, and would keep the flag.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque

from tmkb.protocol.effects import Disconnect, Send
from tmkb.transport import framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Protocol, Self

    from tmkb.protocol.effects import Sent
    from tmkb.transport.engine import Engine
    from tmkb.transport.threads import Reader, Writer

    class Updates(Protocol):
        """Reloaded snapshots, which arrive as bytes on the descriptor `fd`."""

        fd: int

        def feed(self, chunk: bytes) -> list[Sent]:
            """Apply the update in ``chunk``, and return the effects; an empty chunk is the end."""


_CHUNK = 65536
_ATOMIC = getattr(select, "PIPE_BUF", 512)  # bytes that a writable pipe accepts without blocking
_GRACE = 1.0  # seconds without reading after which a signal ends the server
_OPERATION_GRACE = 5.0  # seconds for operations after the end of the input
_CHECK_INTERVAL = 0.5  # seconds between checks for events that wake no loop


def serve(
    runtime: Engine, stdin: int = 0, stdout: int = 1, polled: bool | None = None, updates: Updates | None = None
) -> None:
    """Serve one connection until the input ends, a signal arrives, or the reader of the output disconnects.

    Args:
        polled: whether to use ``poll``; None if the system has it. Windows does not.
        updates: the source of reloaded snapshots.
    """
    _occupy_standard_descriptors()
    conversation = _Conversation(runtime, updates)
    if hasattr(select, "poll") if polled is None else polled:
        with _PolledSignals() as readable:
            _Polled(conversation, stdin, stdout, readable).run()
    else:
        with _Signals() as signals:
            _Threaded(conversation, stdin, stdout, signals).run()
    runtime.stop()
    runtime.log.write("shutdown")
    runtime.log.flush()


def _occupy_standard_descriptors() -> None:
    """Open the standard descriptors that the parent has closed, so that no other file gets their numbers."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)


class _Conversation:
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


class _Signals:
    """Records SIGTERM and SIGINT, so that the current message is handled first."""

    received = False

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self.record) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def record(self, number: int, frame: FrameType | None) -> None:
        self.received = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class _PolledSignals(_Signals):
    """Also makes the descriptor `fd` readable when a signal arrives, to wake a poll."""

    def __enter__(self) -> Self:
        self.fd, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        self.wakeup_before = signal.set_wakeup_fd(self.write_end)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        signal.set_wakeup_fd(self.wakeup_before)
        os.close(self.fd)
        os.close(self.write_end)


def _nonblocking_terminal(fd: int) -> int | None:
    """Open the terminal of ``fd`` once more, without blocking; return None if that is impossible.

    A terminal is writable as soon as it accepts one byte, and then blocks a longer write. Its mode cannot be changed,
    because the shell and other processes share it.
    """
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


class _PolledWriter:
    """Writes to `fd` without blocking, as `threads.Writer` does."""

    def __init__(self, fd: int) -> None:
        self.own = _nonblocking_terminal(fd) if os.isatty(fd) else None
        self.fd = fd if self.own is None else self.own
        self.waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self.written = 0  # bytes
        self.poller = select.poll()
        self.poller.register(self.fd, select.POLLOUT)

    def put(self, data: bytes) -> None:
        if data:
            self.waiting.append(memoryview(data))
            self.waiting_bytes += len(data)

    def write(self) -> bool:
        """Write as much as `fd` accepts. Return False if the reader has disconnected."""
        while self.waiting and self.poller.poll(0):
            data = self.waiting.popleft()
            try:
                written = os.write(self.fd, data[:_ATOMIC])
            except BlockingIOError:  # another process shares the descriptor
                written = 0
            except OSError:
                return False
            self.written += written
            self.waiting_bytes -= written
            if written < len(data):
                self.waiting.appendleft(data[written:])
            if not written:
                break
        return True

    def close(self) -> None:
        """Close the description that the writer has opened."""
        if self.own is not None:
            os.close(self.own)


class _Loop:
    """The parts that both loops share."""

    def __init__(self, conversation: _Conversation, signals: _Signals, writer: _PolledWriter | Writer) -> None:
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


class _Polled(_Loop):
    """The loop with ``poll``: write what the client accepts, read what there is room to answer."""

    def __init__(self, conversation: _Conversation, stdin: int, stdout: int, signals: _PolledSignals) -> None:
        self.writer: _PolledWriter
        super().__init__(conversation, signals, _PolledWriter(stdout))
        self.stdin = stdin
        self.stdout = stdout
        self.wakeup = signals.fd
        self.poller = select.poll()
        self.poller.register(self.wakeup, select.POLLIN)
        self.poller.register(stdout, 0)
        self.hangup_reported = _hangup_reported()
        self.update_fd = -1 if conversation.updates is None else conversation.updates.fd
        if self.update_fd >= 0:
            self.poller.register(self.update_fd, select.POLLIN)
        self.watched = (False, False)  # whether the poller waits for input, and for room for output

    def run(self) -> None:
        """Serve until all input is answered and all output is read, or the client disconnects."""
        try:
            while self._active and self._step():
                pass
        finally:
            self.writer.close()

    def _step(self) -> bool:
        """Wait for events and handle them. Return False if the client has disconnected or reads no more."""
        self._watch()
        if self.conversation.started and not self.prepared and not self.poller.poll(0):
            self._prepare()
        ready = dict(self.poller.poll(self._poll_timeout()))
        if self.wakeup in ready:
            os.read(self.wakeup, 64)
        self._check_signal()
        if self._is_disconnected(ready) or self._is_stuck():
            return False
        if self.reading and self.stdin in ready:
            self._read()
        if self.update_fd in ready:
            self._read_update()
        self._answer()
        if not self.writer.write():
            return False
        self.conversation.runtime.log.flush()
        return True

    def _is_disconnected(self, ready: dict[int, int]) -> bool:
        """Return whether the reader of stdout has disconnected. A pipe reports an error, a socket a hangup."""
        events = ready.get(self.stdout, 0)
        if not self.hangup_reported:
            events |= dict(self.writer.poller.poll(0)).get(self.writer.fd, 0)
        return bool(events & (select.POLLERR | select.POLLHUP | select.POLLNVAL))

    def _read_update(self) -> None:
        self._update(os.read(self.update_fd, _CHUNK))
        if self.conversation.updates is None:
            self.poller.unregister(self.update_fd)

    def _watch(self) -> None:
        """Register the events to wait for. A poll for room without output would return at once."""
        events = self.reading and self._room > 0 and not self.conversation.unhandled, self.writer.waiting_bytes > 0
        if events == self.watched:
            return
        if events[0]:
            self.poller.register(self.stdin, select.POLLIN)
        elif self.watched[0]:
            self.poller.unregister(self.stdin)
        self.poller.register(self.stdout, select.POLLOUT if events[1] else 0)
        self.watched = events

    def _poll_timeout(self) -> float | None:
        """Return the timeout of a poll in milliseconds."""
        seconds = self._timeout()
        if not self.hangup_reported and not self.writer.waiting_bytes:
            seconds = _CHECK_INTERVAL if seconds is None else min(seconds, _CHECK_INTERVAL)
        return int(seconds * 1000) + 1 if seconds else seconds

    def _read(self) -> None:
        try:
            chunk = os.read(self.stdin, _CHUNK)
        except BlockingIOError:  # another process shares the descriptor
            return
        except OSError:
            chunk = b""
        self._feed(chunk)


def _hangup_reported() -> bool:
    """Return whether a poll without events reports a disconnected reader, as POSIX requires.

    XNU (macOS) registers nothing in the kernel for such a poll. There the loop checks stdout every `_CHECK_INTERVAL`.
    """
    outlet, inlet = os.pipe()
    os.close(outlet)
    poller = select.poll()
    poller.register(inlet, 0)
    reported = bool(poller.poll(0))
    os.close(inlet)
    return reported


class _Threaded(_Loop):
    """The loop without ``poll`` (Windows): one thread reads, another writes.

    Ctrl+C does not wake a waiting thread on Windows, so the loop waits for at most `_CHECK_INTERVAL`.
    """

    def __init__(self, conversation: _Conversation, stdin: int, stdout: int, signals: _Signals) -> None:
        from tmkb.transport import threads

        self.writer: Writer
        super().__init__(conversation, signals, threads.Writer(stdout))
        self.stdout = stdout
        self.reader = threads.Reader(stdin, _CHUNK)
        self.update_reader = None if conversation.updates is None else threads.Reader(conversation.updates.fd, _CHUNK)
        self.reader_gone = threads.reader_gone

    def run(self) -> None:
        """Serve until all input is answered and all output is read, or the client disconnects."""
        try:
            while self._active:
                self._check_signal()
                if self.writer.gone or self._is_stuck():
                    return
                if not self._wait() and not self.writer.waiting_bytes and self.reader_gone(self.stdout):
                    return
                if self.update_reader is not None:
                    self._read_updates(self.update_reader)
                self._answer()
                self.conversation.runtime.log.flush()
        finally:
            self.writer.close()

    def _wait(self) -> bool:
        """Wait for input, or until the client reads. Return False after a timeout."""
        seconds = self._timeout()
        seconds = _CHECK_INTERVAL if seconds is None else min(seconds, _CHECK_INTERVAL)
        if not self.reading or self._room <= 0:
            return self.writer.wait(seconds)
        if self.conversation.unhandled:
            return True
        chunk = self.reader.get(0)
        if chunk is None and self.conversation.started and not self.prepared:
            self._prepare()
        if chunk is None:
            chunk = self.reader.get(seconds)
        if chunk is None:
            return False
        self._feed(chunk)
        return True

    def _read_updates(self, reader: Reader) -> None:
        while self.conversation.updates is not None and (chunk := reader.get(0)) is not None:
            self._update(chunk)
