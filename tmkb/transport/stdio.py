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

from tmkb.engine.effects import Send
from tmkb.transport import framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Protocol

    from tmkb.runtime import Runtime, Sent

    class News(Protocol):
        """Of something else to serve: what comes on the descriptor `fd`, and what is sent because of it."""

        fd: int

        def feed(self, chunk: bytes) -> list[Sent]:
            """What is sent because of ``chunk``; empty where no more comes."""


_CHUNK = 65536
_ATOMIC = getattr(select, "PIPE_BUF", 512)  # what a pipe that polls as writable takes without blocking
_GRACE = 1.0  # seconds that a client has to read the rest after a signal
_REST = 5.0  # seconds that operations have to end after the end of the input
_MOMENT = 0.5  # seconds after which to see whether there is news, where descriptors cannot be polled
_POLLED = hasattr(select, "poll")  # Windows has none, and could not poll a pipe


def serve(runtime: Runtime, stdin: int = 0, stdout: int = 1, polled: bool = _POLLED, news: News | None = None) -> None:
    """Serve one connection until the input ends, a signal comes, or nobody reads the output any more."""
    _occupy_standard_descriptors()
    conversation = _Conversation(runtime, news)
    if polled:
        with _Signals() as signals:
            _Polled(conversation, stdin, stdout, signals.fd).run()
    else:
        _threaded(conversation, stdin, stdout)
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
        self.begun = False
        self.over: float | None = None  # when operations that still run are stopped

    def answer(self, chunk: bytes) -> bytes:
        """The answers to all lines that ``chunk`` completes; an empty chunk is the end of the input."""
        self.begun = True
        lines = self.lines.feed(chunk) if chunk else self.lines.finish()
        sent: list[Sent] = []
        for line in lines:
            if isinstance(line, bytes):
                sent += self.runtime.handle(self.connection, line)
            else:
                sent += self.runtime.handle_too_large(self.connection)
        rest = b"" if chunk else self.end()
        return _lines(sent) + rest

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

    def end(self) -> bytes:
        """No more is read. Operations have a while to end; those that wait for the client's answer will not get it."""
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
    """SIGTERM and SIGINT as a readable descriptor, so that the message in work is finished first."""

    def __enter__(self) -> _Signals:
        self.fd, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        self.wakeup_before = signal.set_wakeup_fd(self.write_end)
        self.before = {number: signal.signal(number, self.note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def note(self, number: int, frame: FrameType | None) -> None:
        """Python itself writes to the descriptor; a handler has to be there all the same."""

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.wakeup_before)
        os.close(self.fd)
        os.close(self.write_end)


class _Polled:
    """The loop: wait for something to do, write what somebody will read, read what there is room to answer."""

    def __init__(self, conversation: _Conversation, stdin: int, stdout: int, signals: int) -> None:
        self.conversation = conversation
        self.stdin = stdin
        self.stdout = stdout
        self.signals = signals
        self.waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self.reading = True
        self.prepared = False
        self.signalled = False
        self.deadline: float | None = None
        self.poller = select.poll()
        self.poller.register(signals, select.POLLIN)
        self.poller.register(stdout, 0)
        self.news = -1 if conversation.news is None else conversation.news.fd
        if self.news >= 0:
            self.poller.register(self.news, select.POLLIN)
        self.watched = (False, False)  # whether input, and room for output, are waited for
        self.output = select.poll()
        self.output.register(stdout, select.POLLOUT)

    def run(self) -> None:
        """Until everything is answered and read, or it no longer can be."""
        while self.reading or self.waiting or self.conversation.due() is not None:
            self._watch()
            if self.conversation.begun and not self.prepared and not self.poller.poll(0):
                self.prepared = True  # nobody waits for us: a good moment for what the first call will need
                self.conversation.runtime.prepare()
            ready = dict(self.poller.poll(self._patience()))
            if self.signals in ready:
                self._note_signal()
            if ready.get(self.stdout, 0) & (select.POLLERR | select.POLLNVAL) or self._late():
                return  # the client has gone, or does not read
            if self.reading and self.stdin in ready:
                self._read()
            if self.news in ready:
                self._hear()
            if self._has_room() and self.conversation.due() == 0:
                self._put(self.conversation.work())
            if not self._write():
                return
            self.conversation.runtime.log.flush()

    def _hear(self) -> None:
        self._put(self.conversation.hear())
        self.prepared = False
        if self.conversation.news is None:
            self.poller.unregister(self.news)

    def _note_signal(self) -> None:
        os.read(self.signals, 64)
        self.signalled = True
        if self.reading:
            self.reading = False
            self._put(self.conversation.end())

    def _late(self) -> bool:
        """Whether a client has had its time to read what was left after a signal."""
        if self.signalled and self.deadline is None and self.conversation.due() is None:
            self.deadline = time.monotonic() + _GRACE
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _has_room(self) -> bool:
        return self.waiting_bytes < self.conversation.most_waiting

    def _watch(self) -> None:
        """Wait for what matters now: an output that is writable all the time would never let us wait."""
        wanted = self.reading and self._has_room(), bool(self.waiting)
        if wanted == self.watched:
            return
        if wanted[0]:
            self.poller.register(self.stdin, select.POLLIN)
        elif self.watched[0]:
            self.poller.unregister(self.stdin)
        self.poller.register(self.stdout, select.POLLOUT if wanted[1] else 0)
        self.watched = wanted

    def _patience(self) -> float | None:
        """Milliseconds until there is something to do although nothing happens."""
        due = self.conversation.due() if self._has_room() else None
        rest = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        times = [seconds for seconds in (due, rest) if seconds is not None]
        return int(min(times) * 1000) + 1 if any(times) else 0 if times else None

    def _read(self) -> None:
        try:
            chunk = os.read(self.stdin, _CHUNK)
        except OSError:
            chunk = b""
        self.reading = bool(chunk)
        self._put(self.conversation.answer(chunk))

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
            except OSError:
                return False
            self.waiting_bytes -= written
            if written < len(piece):
                self.waiting.appendleft(piece[written:])
        return True


def _patience(conversation: _Conversation) -> float | None:
    """For how many seconds input may be waited for; news cannot be waited for at the same time."""
    due = conversation.due()
    if conversation.news is None:
        return due
    return _MOMENT if due is None else min(due, _MOMENT)


def _threaded(conversation: _Conversation, stdin: int, stdout: int) -> None:
    """The same where pipes cannot be polled: reading waits in one thread, writing in another."""
    from tmkb.transport.threads import Reader, Writer

    reader, writer = Reader(stdin, _CHUNK), Writer(stdout, conversation.most_waiting)
    news = None if conversation.news is None else Reader(conversation.news.fd, _CHUNK)
    reading = True
    try:
        while reading or conversation.due() is not None:
            chunk = reader.get(_patience(conversation)) if reading else None
            if chunk is None and not reading:
                time.sleep(conversation.due() or 0)
            answers = conversation.answer(chunk) if chunk is not None else conversation.work()
            while news is not None and conversation.news is not None and (told := news.get(0)) is not None:
                answers += conversation.take(told)
            reading = reading and chunk != b""
            if not writer.put(answers):
                break
            conversation.runtime.log.flush()
    except KeyboardInterrupt:  # Ctrl+C ends the input
        pass
    writer.close()
