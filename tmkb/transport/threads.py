"""Input and output with a thread each, for systems on which a pipe cannot be polled (Windows)."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque

_PIECE = 65536  # bytes of one write, so that it is seen whether somebody reads
_PIPE_STATE = 24  # FilePipeLocalInformation
_CLOSED = (1, 4)  # FILE_PIPE_DISCONNECTED_STATE, FILE_PIPE_CLOSING_STATE


class Reader:
    """Reads the descriptor ``fd`` in chunks of at most ``size`` bytes; one waits while another is being answered."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self.chunks: queue.Queue[bytes] = queue.Queue(maxsize=1)
        threading.Thread(target=self._run, daemon=True).start()

    def get(self, seconds: float) -> bytes | None:
        """The next chunk, empty at the end of the input; None where none comes within ``seconds``."""
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
    """Writes what it is given to the descriptor ``fd``, in order. Its caller looks at `waiting_bytes` and `gone`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self.written = 0  # bytes
        self.changed = threading.Condition()
        self.closed = False
        self.gone = False  # nobody reads any more
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Have ``data`` written; never waits."""
        if data:
            with self.changed:
                self.waiting.append(data)
                self.waiting_bytes += len(data)
                self.changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until something has been written, or nobody reads any more. False when ``seconds`` pass before."""
        with self.changed:
            before = self.written
            return self.changed.wait_for(lambda: self.gone or self.written != before, seconds)

    def close(self) -> None:
        """Let the thread end when everything is written; does not wait for it."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _run(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if not self.waiting:
                    return
                rest = memoryview(self.waiting.popleft())
            while rest:
                try:
                    count = os.write(self.fd, rest[:_PIECE])
                except OSError:
                    with self.changed:
                        self.gone = True
                        self.changed.notify_all()
                    return
                rest = rest[count:]
                with self.changed:
                    self.written += count
                    self.waiting_bytes -= count
                    self.changed.notify_all()


def reader_gone(fd: int) -> bool:
    """Whether the other end of the pipe ``fd`` is closed. Call it only while nothing is being written to ``fd``.

    False also where that is not known: for a file, a console, or a system other than Windows.
    Source: Windows driver documentation, NtQueryInformationFile and FILE_PIPE_LOCAL_INFORMATION.
    """
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        status = (ctypes.c_void_p * 2)()
        found = (ctypes.c_ulong * 10)()  # the ninth is NamedPipeState
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
        query = ctypes.WinDLL("ntdll").NtQueryInformationFile
        failed = query(handle, ctypes.byref(status), ctypes.byref(found), ctypes.sizeof(found), _PIPE_STATE)
        return not failed and found[8] in _CLOSED
    return False
