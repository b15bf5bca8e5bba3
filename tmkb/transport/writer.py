"""An output that a thread of its own writes to, for systems on which a pipe cannot be polled (Windows)."""

from __future__ import annotations

import os
import threading
from collections import deque


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
