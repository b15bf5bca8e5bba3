"""Log lines to stderr: ``[LEVEL] [req_id=ID] sentence``. The sentences are the spec's; here is only their form.

A client cannot forge a line, because control characters are escaped, nor stop the server by not reading stderr, because
a line that finds no room is dropped and counted.
"""

from __future__ import annotations

import os

from tmkb import template

try:
    from select import POLLOUT, poll
except ImportError:  # Windows: pipes cannot be polled there, so that a write may wait
    poll = None  # type: ignore[assignment, misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Line = Mapping[str, Any]  # level and message

LEVELS = ("debug", "info", "warning", "error")
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
_HEADS = {level: f"[{level.upper()}] " for level in LEVELS}
_ATOMIC = 4096  # a pipe that polls as writable takes this much without waiting (PIPE_BUF)
_MANY = 100  # lines that may wait

# C0, DEL, C1, the separators that some viewers break lines at, and what reverses the direction of text
_CONTROLS = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


class Log:
    """Writes the lines of ``lines`` (id → template) that are at least of ``level`` to the file descriptor ``fd``.

    Lines are collected and go out together when `flush` is called, or when many wait.
    """

    __slots__ = ("dropped", "fd", "least", "level", "lines", "poller", "torn", "waiting")

    def __init__(self, lines: Mapping[str, Line], level: str = "info", fd: int = 2) -> None:
        self.lines = lines
        self.level = level
        self.least = LEVELS.index(level)
        self.fd = fd
        self.waiting: list[bytes] = []
        self.dropped = 0
        self.torn = False  # the end of the last line found no room
        self.poller = poll() if poll is not None else None
        if self.poller is not None:
            self.poller.register(fd, POLLOUT)

    def write(self, line: str | Line, request_id: str | int | None = None, /, **fields: object) -> None:
        """Add one line, given as itself or by its id, if its level is wanted."""
        found = self.lines[line] if isinstance(line, str) else line
        level = found["level"]
        if _RANKS[level] < self.least:
            return
        id_ = request_id if request_id is None or isinstance(request_id, int) else template.cut(request_id)
        head = _HEADS[level] if id_ is None else f"{_HEADS[level]}[req_id={id_}] "
        text = head + template.fill(found["message"], fields)
        if not text.isprintable():
            text = text.translate(_CONTROLS)
        self.waiting.append(text.encode("utf-8", "backslashreplace") + b"\n")
        if len(self.waiting) >= _MANY:
            self.flush()

    def flush(self) -> None:
        """Write what waits; a line that finds no room is dropped."""
        lines, self.waiting = self.waiting, []
        for line in _joined(lines):
            if self.dropped and self._has_room():
                count, self.dropped = self.dropped, 0
                self.write("lines_dropped", count=count)
                self._put(self.waiting.pop())
            self._put(line)

    def _put(self, data: bytes) -> None:
        data = b"\n" * self.torn + data
        for start in range(0, len(data), _ATOMIC):
            if not self._has_room():
                self.dropped += data.count(b"\n", start)
                self.torn = self.torn or start > 0
                return
            try:
                os.write(self.fd, data[start : start + _ATOMIC])
            except OSError:  # nobody is there to read it; the answers matter more
                return
        self.torn = False

    def _has_room(self) -> bool:
        return self.poller is None or bool(self.poller.poll(0))


def _joined(lines: list[bytes]) -> list[bytes]:
    """``lines`` in as few pieces as can each be written at once."""
    pieces: list[bytes] = []
    for line in lines:
        if pieces and len(pieces[-1]) + len(line) <= _ATOMIC:
            pieces[-1] += line
        else:
            pieces.append(line)
    return pieces
