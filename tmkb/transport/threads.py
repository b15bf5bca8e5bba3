"""The loop over stdio without ``poll`` (Windows): one thread reads, another writes."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque

from tmkb.transport.loop import CHECK_INTERVAL, CHUNK, Loop, Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.transport.loop import Conversation

_PIECE = 65536  # bytes of one write, to notice whether the other end reads
_PIPE_STATE = 24  # FilePipeLocalInformation
_CLOSED = (1, 4)  # FILE_PIPE_DISCONNECTED_STATE, FILE_PIPE_CLOSING_STATE


def run(conversation: Conversation, stdin: int, stdout: int) -> None:
    """Serve until all input is answered and all output is read, or the client disconnects, or a signal arrives."""
    with Signals() as signals:
        Threaded(conversation, stdin, stdout, signals).run()


class Reader:
    """Reads the descriptor ``fd`` in chunks of at most ``size`` bytes, one chunk ahead."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self.chunks: queue.Queue[bytes] = queue.Queue(maxsize=1)
        threading.Thread(target=self._run, daemon=True).start()

    def get(self, seconds: float) -> bytes | None:
        """Return the next chunk, which is empty at the end of the input; None after ``seconds`` without one."""
        try:
            return self.chunks.get(timeout=seconds) if seconds else self.chunks.get_nowait()
        except queue.Empty:
            return None

    def _run(self) -> None:
        chunk = b"."
        while chunk:
            try:
                chunk = os.read(self.fd, self.size)
            except OSError:
                chunk = b""
            self.chunks.put(chunk)


class Writer:
    """Writes data to the descriptor ``fd`` in the background. Callers check `waiting_bytes` and `gone`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self.written = 0  # bytes
        self.changed = threading.Condition()
        self.closed = False
        self.gone = False  # the other end of the pipe is closed
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Queue ``data``; never blocks."""
        if data:
            with self.changed:
                self.waiting.append(data)
                self.waiting_bytes += len(data)
                self.changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until data is written or the other end is closed. Return False after ``seconds``."""
        with self.changed:
            before = self.written
            return self.changed.wait_for(lambda: self.gone or self.written != before, seconds)

    def close(self) -> None:
        """End the thread after it has written all data. Does not wait for it."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _run(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if not self.waiting:
                    return
                data = memoryview(self.waiting.popleft())
            while data:
                try:
                    count = os.write(self.fd, data[:_PIECE])
                except OSError:
                    with self.changed:
                        self.gone = True
                        self.changed.notify_all()
                    return
                data = data[count:]
                with self.changed:
                    self.written += count
                    self.waiting_bytes -= count
                    self.changed.notify_all()


def reader_gone(fd: int) -> bool:
    """Return whether the other end of the pipe ``fd`` is closed. Call this only while no write is in progress.

    Also return False if this is unknown: for a file, a console, or a system other than Windows.
    Source: Windows driver documentation, NtQueryInformationFile and FILE_PIPE_LOCAL_INFORMATION.
    """
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        status = (ctypes.c_void_p * 2)()
        fields = (ctypes.c_ulong * 10)()  # the ninth is NamedPipeState
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
        query = ctypes.WinDLL("ntdll").NtQueryInformationFile
        failed = query(handle, ctypes.byref(status), ctypes.byref(fields), ctypes.sizeof(fields), _PIPE_STATE)
        return not failed and fields[8] in _CLOSED
    return False


class Threaded(Loop):
    """The loop.

    Ctrl+C does not wake a waiting thread on Windows, so the loop waits for at most `CHECK_INTERVAL`.
    """

    def __init__(self, conversation: Conversation, stdin: int, stdout: int, signals: Signals) -> None:
        self.writer: Writer
        super().__init__(conversation, signals, Writer(stdout))
        self.stdout = stdout
        self.reader = Reader(stdin, CHUNK)
        self.update_reader = None if conversation.updates is None else Reader(conversation.updates.fd, CHUNK)

    def run(self) -> None:
        """Serve until all input is answered and all output is read, or the client disconnects."""
        try:
            while self._active:
                self._check_signal()
                if self.writer.gone or self._is_stuck():
                    return
                if not self._wait() and not self.writer.waiting_bytes and reader_gone(self.stdout):
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
        seconds = CHECK_INTERVAL if seconds is None else min(seconds, CHECK_INTERVAL)
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
