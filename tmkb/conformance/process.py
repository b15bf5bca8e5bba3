"""A process that speaks over its standard input and output: its lines, the end of its stderr, and how it ended."""

from __future__ import annotations

import collections
import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

_STDERR_LINES = 20
_STDERR_CHARACTERS = 500
_LARGEST = 1 << 27  # bytes of a line; a longer one is split


class Process:
    """A process whose output threads read. ``stderr``: its last lines, without control characters."""

    def __init__(self, argv: Sequence[str], **start: Any) -> None:
        """Start the command. ``start``: arguments of `subprocess.Popen`. Raises OSError if it cannot be started."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **start)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    @property
    def status(self) -> int | None:
        """The exit status; None while the process runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write ``data`` to its input. Nothing happens if it has ended; `line` raises EOFError then."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def line(self, timeout: float) -> bytes:
        """Return the next line of its output.

        Raises:
            queue.Empty: if none arrives within ``timeout`` seconds.
            EOFError: if the output has ended.
        """
        line = self._lines.get(timeout=max(0.0, timeout))
        if line is None:
            self._lines.put(None)
            raise EOFError
        return line

    def close_input(self) -> None:
        """Close its input, which asks it to end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self, timeout: float) -> bool:
        """Return whether the process ends within ``timeout`` seconds."""
        try:
            self._process.wait(max(0.0, timeout))
        except subprocess.TimeoutExpired:
            return False
        return True

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def end(self, timeout: float) -> bool:
        """Wait for the end of the process, kill it after ``timeout`` seconds, and return whether it was killed."""
        is_killed = not self.wait(timeout)
        if is_killed:
            self.kill()
            self._process.wait()
        deadline = time.monotonic() + 1
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))  # a child of the process may hold its output open
        return is_killed

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while line := output.readline(_LARGEST):
                self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as errors:
            while line := errors.readline(1 << 16):
                text = line.decode("utf-8", "replace").rstrip("\r\n")[:_STDERR_CHARACTERS]
                self.stderr.append("".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text))
