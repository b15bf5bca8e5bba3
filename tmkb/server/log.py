"""Write log lines to stderr: ``[LEVEL] [req_id=ID] message``. The messages are in the YAML files.

Control characters are escaped, so a client cannot forge a line. If stderr is not read, lines are dropped and counted,
so the server never blocks.
"""

from __future__ import annotations

import os
import select
import sys

from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from tmkb.insight.observer import Observer

    class Output(Protocol):
        """A destination that never blocks."""

        def has_room(self) -> bool:
            """Return whether `write` is possible now."""

        def write(self, piece: bytes) -> None:
            """Write at most `_ATOMIC` bytes."""

    Line = Mapping[str, Any]  # level and message

LEVELS = ("debug", "info", "warning", "error")
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
_PREFIXES = {level: f"[{level.upper()}] " for level in LEVELS}
_ATOMIC = getattr(select, "PIPE_BUF", 512)  # bytes that a writable pipe accepts without blocking
_MAX_PENDING = 100  # lines
_GRACE = 1.0  # seconds that the end of the process waits until the last lines are read

# C0, DEL, C1, line separators, and characters that change the direction of text
_CONTROLS = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


class Log:
    """Writes lines of at least ``level`` to the file descriptor ``fd``. ``lines``: id → level and message.

    Lines are buffered until `flush` is called or `_MAX_PENDING` are pending.
    """

    observer: Observer | None = None  # receives the ids of lines that belong to no request

    def __init__(self, lines: Mapping[str, Line], level: str = "info", fd: int = 2) -> None:
        self.lines = lines
        self.level = level
        self.min_rank = LEVELS.index(level)
        self.pending: list[tuple[Line, str | int | None, Mapping[str, object]]] = []
        self.dropped = 0
        self.truncated = False  # whether the end of the last line was dropped
        self.output: Output
        if sys.platform == "win32":
            self.output = _ThreadOutput(fd)
        else:
            self.output = _PollingOutput(fd)

    def write(self, line: str | Line, request_id: str | int | None = None, /, **fields: object) -> None:
        """Write a line, or the line with an id, if its level is enabled."""
        if isinstance(line, str):
            if self.observer is not None:
                self.observer.logged(line)
            line = self.lines[line]
        if _RANKS[line["level"]] < self.min_rank:
            return
        self._add(line, template.cut(request_id) if isinstance(request_id, str) else request_id, fields)

    def _add(self, line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> None:
        self.pending.append((line, request_id, fields))
        if len(self.pending) >= _MAX_PENDING:
            self.flush()

    def flush(self) -> None:
        """Format and write the pending lines. Lines for which there is no room are dropped."""
        pending, self.pending = self.pending, []
        for line in _join([_format(*each) for each in pending]):
            if self.dropped and self.output.has_room():
                count, self.dropped = self.dropped, 0
                self._put(_format(self.lines["lines_dropped"], None, {"count": count}))
            self._put(line)

    def _put(self, data: bytes) -> None:
        data = b"\n" * self.truncated + data
        for start in range(0, len(data), _ATOMIC):
            if not self.output.has_room():
                self.dropped += data.count(b"\n", start)
                self.truncated = self.truncated or start > 0
                return
            try:
                self.output.write(data[start : start + _ATOMIC])
            except OSError:  # stderr is closed, which must not stop the server
                return
        self.truncated = False


class StandardLog(Log):
    """Writes lines to the logger ``tmkb`` of `logging`. Changes of its level after the start have no effect."""

    def __init__(self, lines: Mapping[str, Line]) -> None:
        import logging

        self.lines = lines
        self.logger = logging.getLogger("tmkb")
        enabled = [level for level in LEVELS if self.logger.isEnabledFor(getattr(logging, level.upper()))]
        self.level = (enabled or LEVELS[-1:])[0]
        self.min_rank = LEVELS.index(self.level)

    def flush(self) -> None:
        """Do nothing, because the logger's handlers flush."""

    def _add(self, line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> None:
        import logging

        self.logger.log(getattr(logging, line["level"].upper()), "%s", _text(line, request_id, fields))


if sys.platform != "win32":

    class _PollingOutput:
        """Writes to a descriptor when it is writable."""

        def __init__(self, fd: int) -> None:
            self.fd = fd
            self.poller = select.poll()
            self.poller.register(fd, select.POLLOUT)

        def has_room(self) -> bool:
            return bool(self.poller.poll(0))

        def write(self, piece: bytes) -> None:
            os.write(self.fd, piece)


class _ThreadOutput:
    """Writes from a thread, where descriptors cannot be polled (Windows)."""

    def __init__(self, fd: int) -> None:
        import atexit
        import queue
        import threading

        self.fd = fd
        self.pieces: queue.Queue[bytes] = queue.Queue(_MAX_PENDING)
        threading.Thread(target=self._run, daemon=True).start()
        atexit.register(self._finish)

    def has_room(self) -> bool:
        return not self.pieces.full()

    def write(self, piece: bytes) -> None:
        self.pieces.put_nowait(piece)

    def _run(self) -> None:
        import contextlib

        while True:
            piece = self.pieces.get()
            with contextlib.suppress(OSError):  # stderr is closed
                os.write(self.fd, piece)
            self.pieces.task_done()

    def _finish(self) -> None:
        """Wait until the last pieces are read, at most for `_GRACE`."""
        with self.pieces.all_tasks_done:
            self.pieces.all_tasks_done.wait_for(lambda: not self.pieces.unfinished_tasks, _GRACE)


def _format(line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> bytes:
    return f"{_PREFIXES[line['level']]}{_text(line, request_id, fields)}\n".encode("utf-8", "backslashreplace")


def _text(line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> str:
    text = template.fill(line["message"], fields)
    if request_id is not None:
        text = f"[req_id={request_id}] {text}"
    return text if text.isprintable() else text.translate(_CONTROLS)


def _join(lines: list[bytes]) -> list[bytes]:
    """Join ``lines`` to pieces of at most `_ATOMIC` bytes."""
    pieces: list[bytes] = []
    for line in lines:
        if pieces and len(pieces[-1]) + len(line) <= _ATOMIC:
            pieces[-1] += line
        else:
            pieces.append(line)
    return pieces
