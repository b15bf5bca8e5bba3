"""A server on two file descriptors: lines in, lines out. Never waits on output while there is input it may take.

A client may write many requests before it reads an answer: answers wait in memory, up to a limit, and only then reading
pauses. Output goes out in pieces that a polled pipe takes without blocking; its descriptor is not made non-blocking,
because that would outlive us in the process that shares it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque

from tmkb.protocol.effects import Send
from tmkb.transport import framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Protocol, Self

    from tmkb.server.runtime import Runtime, Sent
    from tmkb.transport.threads import Reader

    class News(Protocol):
        """Of something else to serve: what comes on the descriptor `fd`, and what is sent because of it."""

        fd: int

        def feed(self, chunk: bytes) -> list[Sent]:
            """What is sent because of ``chunk``; empty where no more comes."""


_CHUNK = 65536
_ATOMIC = getattr(select, "PIPE_BUF", 512)  # what a pipe that polls as writable takes without blocking
_GRACE = 1.0  # seconds for which a client may read nothing after a signal
_REST = 5.0  # seconds that operations have to end after the end of the input
_MOMENT = 0.5  # seconds between two looks at what nothing reports: signals, news or a closed stdout


def serve(
    runtime: Runtime, stdin: int = 0, stdout: int = 1, polled: bool | None = None, news: News | None = None
) -> None:
    """Serve one connection until the input ends, a signal comes, or nobody reads the output any more.

    ``polled``: whether descriptors can be polled; None asks the system. Windows has no ``poll``.
    """
    _occupy_standard_descriptors()
    conversation = _Conversation(runtime, news)
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
    """A parent may have closed some of them; a descriptor of our own must not take their numbers."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)


class _Conversation:
    """Bytes in, bytes out: framing and runtime put together for one peer."""

    def __init__(self, runtime: Runtime, news: News | None) -> None:
        limits = runtime.spec["server"]["limits"]
        self.runtime = runtime
        self.news = news
        self.connection = runtime.connect()
        self.lines = framing.Lines(limits["message_bytes"])
        self.most_waiting = limits["backlog_bytes"]
        self.unanswered: deque[bytes | framing.TooLarge] = deque()
        self.begun = False
        self.ended = False  # no more is read
        self.over: float | None = None  # when operations that still run are stopped

    def feed(self, chunk: bytes) -> None:
        """Take input; `answer` answers the lines that it completes. An empty chunk is the end of the input."""
        self.begun = True
        self.unanswered += self.lines.feed(chunk) if chunk else self.lines.finish()
        self.ended = not chunk

    @property
    def unfinished(self) -> bool:
        """Whether `answer` has something to do."""
        return bool(self.unanswered) or (self.ended and self.over is None)

    def answer(self, room: int) -> bytes:
        """Answer lines until the answers fill ``room`` bytes. After the last line of the input, end the connection."""
        answers: list[bytes] = []
        while self.unanswered and room > 0:
            line = self.unanswered.popleft()
            if isinstance(line, bytes):
                sent = self.runtime.handle(self.connection, line)
            else:
                sent = self.runtime.handle_too_large(self.connection)
            answers.append(_lines(sent))
            room -= len(answers[-1])
        if self.ended and self.over is None and not self.unanswered:
            answers.append(self._end())
        return b"".join(answers)

    def hear(self) -> bytes:
        """Take what there is of the news, between two messages; what the client is told of it."""
        assert self.news is not None
        return self.take(os.read(self.news.fd, _CHUNK))

    def take(self, chunk: bytes) -> bytes:
        """The same for a chunk of the news that has been read."""
        assert self.news is not None
        told = _lines(self.news.feed(chunk))
        if not chunk:
            self.news = None
        limits = self.runtime.spec["server"]["limits"]
        self.lines.limit, self.most_waiting = limits["message_bytes"], limits["backlog_bytes"]
        return told

    def _end(self) -> bytes:
        """Operations have a while to end; those that wait for the client's answer will not get it."""
        self.over = time.monotonic() + _REST
        return _lines(self.runtime.end(self.connection))

    def due(self) -> float | None:
        """In how many seconds there is something to do for operations; None where none runs."""
        due = self.runtime.due()
        if due is None or self.over is None:
            return due
        return min(due, max(0.0, self.over - time.monotonic()))

    def work(self) -> bytes:
        """What the operations that go on now have to say."""
        stopped = self.runtime.stop() if self.over is not None and time.monotonic() >= self.over else []
        return _lines([*stopped, *self.runtime.work()])


def _lines(sent: Iterable[Sent]) -> bytes:
    """All that is sent, as it goes on the stream; nobody is let go for a while here."""
    return b"".join([framing.line(each.message) for each in sent if isinstance(each, Send)])


class _Signals:
    """Notes SIGTERM and SIGINT, so that the message in work is finished first."""

    noted = False

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self.note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def note(self, number: int, frame: FrameType | None) -> None:
        self.noted = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class _PolledSignals(_Signals):
    """Also makes the descriptor `fd` readable when a signal comes, so that a poll ends."""

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


class _Loop:
    """What both loops know about the end: input, answers, operations, and the time after a signal."""

    def __init__(self, conversation: _Conversation, signals: _Signals) -> None:
        self.conversation = conversation
        self.signals = signals
        self.reading = True
        self.prepared = False
        self.written = 0  # bytes
        self.deadline: float | None = None
        self.written_before_deadline = 0

    def _going(self, answers_wait: bool) -> bool:
        conversation = self.conversation
        return self.reading or conversation.unfinished or answers_wait or conversation.due() is not None

    def _note_signal(self) -> None:
        """End the input where a signal has come."""
        if self.signals.noted and self.reading:
            self.reading = False
            self.conversation.ended = True

    def _late(self, room: int) -> bool:
        """Whether a signal has come, nothing is left but to write, and the client has read nothing for a while."""
        if not self.signals.noted:
            return False
        stuck = room <= 0 or not (self.conversation.unfinished or self.conversation.due() is not None)
        if not stuck or self.deadline is None or self.written != self.written_before_deadline:
            self.deadline = time.monotonic() + _GRACE
            self.written_before_deadline = self.written
        return time.monotonic() >= self.deadline

    def _seconds(self, room: int) -> float | None:
        """Seconds until there is something to do although nothing happens; None where there is nothing."""
        if room > 0 and self.conversation.unfinished:
            return 0.0
        due = self.conversation.due() if room > 0 else None
        rest = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        return min((seconds for seconds in (due, rest) if seconds is not None), default=None)


class _Polled(_Loop):
    """The loop: wait for something to do, write what somebody will read, read what there is room to answer."""

    def __init__(self, conversation: _Conversation, stdin: int, stdout: int, signals: _PolledSignals) -> None:
        super().__init__(conversation, signals)
        self.stdin = stdin
        self.stdout = stdout
        self.wakeup = signals.fd
        self.waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self.poller = select.poll()
        self.poller.register(self.wakeup, select.POLLIN)
        self.poller.register(stdout, 0)
        self.hangup_reported = _hangup_reported()
        self.news = -1 if conversation.news is None else conversation.news.fd
        if self.news >= 0:
            self.poller.register(self.news, select.POLLIN)
        self.watched = (False, False)  # whether input, and room for output, are waited for
        self.output = select.poll()
        self.output.register(stdout, select.POLLOUT)

    def run(self) -> None:
        """Until everything is answered and read, or it no longer can be."""
        while self._going(bool(self.waiting)):
            self._watch()
            self._prepare()
            ready = dict(self.poller.poll(self._patience()))
            if self.wakeup in ready:
                os.read(self.wakeup, 64)
            self._note_signal()
            if self._reader_gone(ready) or self._late(self._room()):
                return
            if self.reading and self.stdin in ready:
                self._read()
            if self.news in ready:
                self._hear()
            self._answer()
            if not self._write():
                return
            self.conversation.runtime.log.flush()

    def _prepare(self) -> None:
        """Load what the first call will need, at a moment when the client waits for nothing."""
        if self.conversation.begun and not self.prepared and not self.poller.poll(0):
            self.prepared = True
            self.conversation.runtime.prepare()

    def _answer(self) -> None:
        if self._room() > 0:
            self._put(self.conversation.answer(self._room()))
        if self._room() > 0 and self.conversation.due() == 0:
            self._put(self.conversation.work())

    def _reader_gone(self, ready: dict[int, int]) -> bool:
        """Whether nobody can read stdout any more. A pipe reports an error then, a socket or terminal a hangup."""
        events = ready.get(self.stdout, 0)
        if not self.hangup_reported:
            events |= dict(self.output.poll(0)).get(self.stdout, 0)
        return bool(events & (select.POLLERR | select.POLLHUP | select.POLLNVAL))

    def _hear(self) -> None:
        self._put(self.conversation.hear())
        self.prepared = False
        if self.conversation.news is None:
            self.poller.unregister(self.news)

    def _room(self) -> int:
        return self.conversation.most_waiting - self.waiting_bytes

    def _watch(self) -> None:
        """Wait for what matters now: an output that is writable all the time would never let us wait."""
        wanted = self.reading and self._room() > 0 and not self.conversation.unanswered, bool(self.waiting)
        if wanted == self.watched:
            return
        if wanted[0]:
            self.poller.register(self.stdin, select.POLLIN)
        elif self.watched[0]:
            self.poller.unregister(self.stdin)
        self.poller.register(self.stdout, select.POLLOUT if wanted[1] else 0)
        self.watched = wanted

    def _patience(self) -> float | None:
        """Milliseconds that a poll may take."""
        seconds = self._seconds(self._room())
        if not self.hangup_reported and not self.waiting:
            seconds = _MOMENT if seconds is None else min(seconds, _MOMENT)
        return int(seconds * 1000) + 1 if seconds else seconds

    def _read(self) -> None:
        try:
            chunk = os.read(self.stdin, _CHUNK)
        except BlockingIOError:  # another process that shares the descriptor was faster
            return
        except OSError:
            chunk = b""
        self.reading = bool(chunk)
        self.conversation.feed(chunk)

    def _put(self, messages: bytes) -> None:
        if messages:
            self.waiting.append(memoryview(messages))
            self.waiting_bytes += len(messages)

    def _write(self) -> bool:
        """Write as much as is taken at once. False when nobody reads any more."""
        while self.waiting and self.output.poll(0):
            piece = self.waiting.popleft()
            try:
                written = os.write(self.stdout, piece[:_ATOMIC])
            except BlockingIOError:  # another process that shares the descriptor was faster
                written = 0
            except OSError:
                return False
            self.written += written
            self.waiting_bytes -= written
            if written < len(piece):
                self.waiting.appendleft(piece[written:])
            if not written:
                break
        return True


def _hangup_reported() -> bool:
    """Whether a poll that asks for no event reports a reader that has gone, as POSIX demands.

    XNU (macOS) registers nothing in the kernel for such a poll. There the loop looks at stdout every `_MOMENT`.
    """
    outlet, inlet = os.pipe()
    os.close(outlet)
    poller = select.poll()
    poller.register(inlet, 0)
    reported = bool(poller.poll(0))
    os.close(inlet)
    return reported


class _Threaded(_Loop):
    """The loop where descriptors cannot be polled (Windows): one thread reads, another writes.

    Windows wakes no waiting thread for Ctrl+C, so the loop never waits for longer than `_MOMENT`.
    """

    def __init__(self, conversation: _Conversation, stdin: int, stdout: int, signals: _Signals) -> None:
        from tmkb.transport import threads

        super().__init__(conversation, signals)
        self.stdout = stdout
        self.reader = threads.Reader(stdin, _CHUNK)
        self.writer = threads.Writer(stdout)
        self.news = None if conversation.news is None else threads.Reader(conversation.news.fd, _CHUNK)
        self.look = threads.reader_gone

    def run(self) -> None:
        """Until everything is answered and read, or it no longer can be."""
        try:
            while self._going(self.writer.waiting_bytes > 0):
                self._note_signal()
                self.written = self.writer.written
                if self.writer.gone or self._late(self._room()):
                    return
                if not self._wait() and not self.writer.waiting_bytes and self.look(self.stdout):
                    return
                if self.news is not None and self.conversation.news is not None:
                    self._hear(self.news)
                if self._room() > 0:
                    self.writer.put(self.conversation.answer(self._room()))
                if self._room() > 0 and self.conversation.due() == 0:
                    self.writer.put(self.conversation.work())
                self.conversation.runtime.log.flush()
        finally:
            self.writer.close()

    def _room(self) -> int:
        return self.conversation.most_waiting - self.writer.waiting_bytes

    def _wait(self) -> bool:
        """Wait for a moment for input, or for the client to read. False when nothing happened."""
        seconds = self._seconds(self._room())
        seconds = _MOMENT if seconds is None else min(seconds, _MOMENT)
        if not self.reading or self._room() <= 0:
            return self.writer.wait(seconds)
        if self.conversation.unanswered:
            return True
        chunk = self.reader.get(0)
        if chunk is None and self.conversation.begun and not self.prepared:
            self.prepared = True
            self.conversation.runtime.prepare()
        if chunk is None:
            chunk = self.reader.get(seconds)
        if chunk is None:
            return False
        self.reading = bool(chunk)
        self.conversation.feed(chunk)
        return True

    def _hear(self, news: Reader) -> None:
        while (chunk := news.get(0)) is not None:
            self.writer.put(self.conversation.take(chunk))
            self.prepared = False
            if not chunk:
                return
