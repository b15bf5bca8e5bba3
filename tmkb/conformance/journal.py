"""Hand what passes a relay to a process that records it, so that the relay never waits for redaction or a disk.

Between the two, a third process holds what the recording process has not yet read. So everything that the relay has
handed over reaches the file, even if the relay is killed immediately afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator

_FRAME = struct.Struct(">IBI")  # recording, kind, length of the data
# Kinds of frames: bytes of a stream of lines, one message, or the headers of a request or response on one line each.
CLIENT, SERVER, CLIENT_MESSAGE, SERVER_MESSAGE, HEADERS = range(5)
_PIPE = 1 << 20  # bytes that a pipe holds, where the system permits that
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux

Frame = tuple[int, int, bytes]


class Journal:
    """The relay's end. Methods may be called from any thread."""

    def __init__(self, pipe: int, wait: Callable[[], int]) -> None:
        """Write to ``pipe``. ``wait`` waits for the end of the recording and returns its status."""
        self._pipe = pipe
        self._wait = wait
        self._lock = threading.Lock()

    def put(self, recording: int, kind: int, data: bytes) -> None:
        """Hand over ``data`` for the file with the number ``recording``; do nothing after `close`."""
        frame = memoryview(_FRAME.pack(recording, kind, len(data)) + data)
        with self._lock, contextlib.suppress(BrokenPipeError):  # the recording failed; its status says so
            while frame and self._pipe >= 0:
                frame = frame[os.write(self._pipe, frame) :]

    def close(self) -> int:
        """Wait until all is recorded; return 0, or another status if the recording failed."""
        with self._lock:
            os.close(self._pipe)
            self._pipe = -1
        return self._wait()


class _ThreadJournal(Journal):
    """A journal whose frames a thread of this process records."""

    def __init__(self, record: Callable[[Iterator[Frame]], int]) -> None:
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._status = 2
        self._thread = threading.Thread(target=self._run, args=(record,))
        self._thread.start()

    def put(self, recording: int, kind: int, data: bytes) -> None:
        self._frames.put((recording, kind, data))

    def close(self) -> int:
        self._frames.put(None)
        self._thread.join()
        return self._status

    def _run(self, record: Callable[[Iterator[Frame]], int]) -> None:
        self._status = record(iter(self._frames.get, None))


def start(record: Callable[[Iterator[Frame]], int]) -> Journal:
    """Start ``record`` in a process of its own, and return the journal whose frames it gets.

    ``record`` returns an exit status. Without `os.fork` it runs in a thread, and what it has not yet recorded is lost
    when this process is killed. Call this before other threads start.
    """
    if sys.platform == "win32":
        return _ThreadJournal(record)
    from_relay, to_buffer = os.pipe()
    from_buffer, to_recorder = os.pipe()
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        for pipe in (to_buffer, to_recorder):
            fcntl.fcntl(pipe, getattr(fcntl, "F_SETPIPE_SZ", _SET_PIPE_SIZE), _PIPE)
    sys.stdout.flush()
    buffer = _fork(lambda: _buffer(from_relay, to_recorder), [to_buffer, from_buffer])
    recorder = _fork(lambda: record(frames(from_buffer)), [to_buffer, from_relay, to_recorder])
    for pipe in (from_relay, from_buffer, to_recorder):
        os.close(pipe)

    def wait() -> int:
        os.waitpid(buffer, 0)
        return os.waitstatus_to_exitcode(os.waitpid(recorder, 0)[1])

    return Journal(to_buffer, wait)


def frames(pipe: int) -> Iterator[Frame]:
    """Yield the frames that arrive at ``pipe`` until it is closed."""
    data = bytearray()
    while chunk := os.read(pipe, _PIPE):
        data += chunk
        at = 0
        while len(data) - at >= _FRAME.size:
            recording, kind, length = _FRAME.unpack_from(data, at)
            if len(data) - at - _FRAME.size < length:
                break
            at += _FRAME.size
            yield recording, kind, bytes(data[at : at + length])
            at += length
        del data[:at]


def _fork(work: Callable[[], int], unused: list[int]) -> int:
    """Do ``work`` in a new process, after it closes the pipes ``unused``; return its id."""
    if sys.platform == "win32":
        raise NotImplementedError
    if process := os.fork():
        return process
    status = 2
    try:
        for pipe in unused:
            os.close(pipe)
        _detach()
        status = work()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _detach() -> None:
    """Leave the group of the relay, so that no signal to it ends the recording, and close its pipes."""
    if sys.platform == "win32":
        raise NotImplementedError
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.close(null)


def _buffer(source: int, target: int) -> int:
    """Copy bytes from ``source`` to ``target``, and hold in memory what ``target`` does not accept yet."""
    if sys.platform == "win32":
        raise NotImplementedError
    os.set_blocking(target, False)
    waiting: collections.deque[memoryview] = collections.deque()
    is_open = True
    while is_open or waiting:
        readable, writable, _ = select.select([source] if is_open else [], [target] if waiting else [], [])
        if readable:
            data = os.read(source, _PIPE)
            is_open = bool(data)
            if data:
                waiting.append(memoryview(data))
        if writable:
            try:
                rest = waiting[0][os.write(target, waiting[0]) :]
            except BrokenPipeError:  # the recording failed
                rest = memoryview(b"")
            waiting.popleft()
            if rest:
                waiting.appendleft(rest)
    os.close(target)
    return 0
