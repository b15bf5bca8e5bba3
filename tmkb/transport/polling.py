"""The loop over stdio with ``poll``: write what the client accepts, read what there is room to answer.

The loop writes only as much as a polled pipe accepts without blocking. It does not set O_NONBLOCK: other processes may
share the descriptor, and would keep the flag.
"""

from __future__ import annotations

import os
import select
import sys

from tmkb.stdlib import deque, signal
from tmkb.transport import loop
from tmkb.transport.loop import CHECK_INTERVAL, CHUNK, Loop

assert sys.platform != "win32"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from tmkb.transport.loop import Conversation

_ATOMIC = select.PIPE_BUF  # bytes that a writable pipe accepts without blocking


def run(conversation: Conversation, stdin: int, stdout: int) -> None:
    """Serve until all input is answered and all output is read, or the client disconnects, or a signal arrives."""
    with Signals() as signals:
        Polled(conversation, stdin, stdout, signals).run()


class Signals(loop.Signals):
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


class Writer:
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
        """Queue ``data``; never blocks."""
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


class Polled(Loop):
    """The loop with ``poll``: write what the client accepts, read what there is room to answer."""

    def __init__(self, conversation: Conversation, stdin: int, stdout: int, signals: Signals) -> None:
        self.writer: Writer
        super().__init__(conversation, signals, Writer(stdout))
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
        self._update(os.read(self.update_fd, CHUNK))
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
            seconds = CHECK_INTERVAL if seconds is None else min(seconds, CHECK_INTERVAL)
        return int(seconds * 1000) + 1 if seconds else seconds

    def _read(self) -> None:
        try:
            chunk = os.read(self.stdin, CHUNK)
        except BlockingIOError:  # another process shares the descriptor
            return
        except OSError:
            chunk = b""
        self._feed(chunk)


def _hangup_reported() -> bool:
    """Return whether a poll without events reports a disconnected reader, as POSIX requires.

    XNU (macOS) registers nothing in the kernel for such a poll. There the loop checks stdout every `CHECK_INTERVAL`.
    """
    outlet, inlet = os.pipe()
    os.close(outlet)
    poller = select.poll()
    poller.register(inlet, 0)
    reported = bool(poller.poll(0))
    os.close(inlet)
    return reported
