"""Input and output with a thread each, for systems on which a pipe cannot be polled (Windows)."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque

_MOMENT = 0.5  # seconds after which waiting can be interrupted; Windows does not wake a thread for Ctrl+C


class Reader:
    """Reads the descriptor ``fd`` in chunks of at most ``size`` bytes; one waits while another is being answered."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self.chunks: queue.Queue[bytes] = queue.Queue(maxsize=1)
        threading.Thread(target=self._run, daemon=True).start()

    def get(self, seconds: float | None) -> bytes | None:
        """The next chunk, empty at the end of the input; None where none comes within ``seconds`` (None: for ever)."""
        while True:
            moment = _MOMENT if seconds is None else min(_MOMENT, seconds)
            try:
                return self.chunks.get(timeout=moment)
            except queue.Empty:
                if seconds is not None:
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
    """Writes what it is given to the descriptor ``fd``, in order; keeps at most about ``most_waiting`` bytes."""

    def __init__(self, fd: int, most_waiting: int) -> None:
        self.fd = fd
        self.most_waiting = most_waiting
        self.waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self.changed = threading.Condition()
        self.closed = False
        self.gone = False  # nobody reads any more
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def put(self, data: bytes) -> bool:
        """Have ``data`` written, waiting for room if there is too much already. False when nobody reads any more."""
        with self.changed:
            self.changed.wait_for(lambda: self.gone or self.waiting_bytes < self.most_waiting)
            self.waiting.append(data)
            self.waiting_bytes += len(data)
            self.changed.notify_all()
            return not self.gone

    def close(self) -> None:
        """Return when everything is written, or nobody reads any more."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.thread.join()

    def _run(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if not self.waiting:
                    return
                data = self.waiting.popleft()
            self.gone = self.gone or not self._write(data)
            with self.changed:
                self.waiting_bytes -= len(data)
                self.changed.notify_all()

    def _write(self, data: bytes) -> bool:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError:
            return False
        return True
