"""Log lines to stderr: ``[LEVEL] [req_id=ID] sentence``. The sentences are the spec's; here is only their form.

A client cannot forge a line, because control characters are escaped, nor stop the server by not reading stderr, because
a line that finds no room is dropped and counted.
"""

from __future__ import annotations

import os
import select

from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Output(Protocol):
        """Where the lines go: takes pieces of bytes, and never waits."""

        def has_room(self) -> bool:
            """Whether it takes one more piece now."""

        def write(self, piece: bytes) -> None:
            """Take a piece."""

    Line = Mapping[str, Any]  # level and message

LEVELS = ("debug", "info", "warning", "error")
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
_HEADS = {level: f"[{level.upper()}] " for level in LEVELS}
_ATOMIC = getattr(select, "PIPE_BUF", 512)  # what a pipe that polls as writable takes without blocking
_MANY = 100  # lines that may wait
_GRACE = 1.0  # seconds for which the end of the process waits until the last lines are read

# C0, DEL, C1, the separators that some viewers break lines at, and what reverses the direction of text
_CONTROLS = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


class Log:
    """Writes the lines of ``lines`` (id → template) that are at least of ``level`` to the file descriptor ``fd``.

    Lines are collected and go out together when `flush` is called, or when many wait.
    """

    __slots__ = ("dropped", "least", "level", "lines", "output", "torn", "waiting")

    def __init__(self, lines: Mapping[str, Line], level: str = "info", fd: int = 2) -> None:
        self.lines = lines
        self.level = level
        self.least = LEVELS.index(level)
        self.waiting: list[tuple[Line, str | int | None, Mapping[str, object]]] = []
        self.dropped = 0
        self.torn = False  # the end of the last line found no room
        self.output: Output = _Polled(fd) if hasattr(select, "poll") else _Threaded(fd)

    def write(self, line: str | Line, request_id: str | int | None = None, /, **fields: object) -> None:
        """Add one line, given as itself or by its id, if its level is wanted."""
        line = self.lines[line] if isinstance(line, str) else line
        if _RANKS[line["level"]] < self.least:
            return
        self._add(line, template.cut(request_id) if isinstance(request_id, str) else request_id, fields)

    def _add(self, line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> None:
        self.waiting.append((line, request_id, fields))
        if len(self.waiting) >= _MANY:
            self.flush()

    def flush(self) -> None:
        """Format and write the lines that wait; one that finds no room is dropped."""
        waiting, self.waiting = self.waiting, []
        for line in _joined([_formatted(*each) for each in waiting]):
            if self.dropped and self.output.has_room():
                count, self.dropped = self.dropped, 0
                self._put(_formatted(self.lines["lines_dropped"], None, {"count": count}))
            self._put(line)

    def _put(self, data: bytes) -> None:
        data = b"\n" * self.torn + data
        for start in range(0, len(data), _ATOMIC):
            if not self.output.has_room():
                self.dropped += data.count(b"\n", start)
                self.torn = self.torn or start > 0
                return
            try:
                self.output.write(data[start : start + _ATOMIC])
            except OSError:  # nobody is there to read it; the answers matter more
                return
        self.torn = False


class StandardLog(Log):
    """Writes the lines to the logger ``tmkb`` of `logging`, which decides what becomes of them.

    The level is that of the logger now: `Log` asks it once.
    """

    def __init__(self, lines: Mapping[str, Line]) -> None:
        import logging

        self.lines = lines
        self.logger = logging.getLogger("tmkb")
        enabled = [level for level in LEVELS if self.logger.isEnabledFor(getattr(logging, level.upper()))]
        self.level = (enabled or LEVELS[-1:])[0]
        self.least = LEVELS.index(self.level)

    def flush(self) -> None:
        """Do nothing: the handlers of the logger flush."""

    def _add(self, line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> None:
        import logging

        self.logger.log(getattr(logging, line["level"].upper()), "%s", _text(line, request_id, fields))


class _Polled:
    """Writes to a descriptor that polls as writable."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.poller = select.poll()
        self.poller.register(fd, select.POLLOUT)

    def has_room(self) -> bool:
        return bool(self.poller.poll(0))

    def write(self, piece: bytes) -> None:
        os.write(self.fd, piece)


class _Threaded:
    """Writes from a thread, where descriptors cannot be polled (Windows). Holds at most `_MANY` pieces."""

    def __init__(self, fd: int) -> None:
        import atexit
        import queue
        import threading

        self.fd = fd
        self.pieces: queue.Queue[bytes] = queue.Queue(_MANY)
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
            with contextlib.suppress(OSError):  # nobody reads any more
                os.write(self.fd, piece)
            self.pieces.task_done()

    def _finish(self) -> None:
        """Wait until the last pieces are read, for `_GRACE` at most."""
        with self.pieces.all_tasks_done:
            self.pieces.all_tasks_done.wait_for(lambda: not self.pieces.unfinished_tasks, _GRACE)


def _formatted(line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> bytes:
    return f"{_HEADS[line['level']]}{_text(line, request_id, fields)}\n".encode("utf-8", "backslashreplace")


def _text(line: Line, request_id: str | int | None, fields: Mapping[str, object]) -> str:
    text = template.fill(line["message"], fields)
    if request_id is not None:
        text = f"[req_id={request_id}] {text}"
    return text if text.isprintable() else text.translate(_CONTROLS)


def _joined(lines: list[bytes]) -> list[bytes]:
    """``lines`` in as few pieces as can each be written at once."""
    pieces: list[bytes] = []
    for line in lines:
        if pieces and len(pieces[-1]) + len(line) <= _ATOMIC:
            pieces[-1] += line
        else:
            pieces.append(line)
    return pieces
