"""Split a byte stream into lines, one message each. Does no I/O.

Specification: Basic / Transports, stdio.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
_MARGIN = len(_BOM) + len(b"\r")  # bytes that do not count against the limit


class Lines:
    """Splits a stream into lines of at most ``limit`` bytes, not counting LF or CR LF. Skips blank lines.

    A line that exceeds the limit is reported as None. Stores at most one incomplete line.
    """

    __slots__ = ("discarding", "incomplete", "limit", "started")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.incomplete = bytearray()  # grows in place, so that a long line in many chunks takes linear time
        self.discarding = False  # until the end of a line that exceeds the limit
        self.started = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that ``chunk`` completes. A line is None as soon as it exceeds the limit."""
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for piece in ends:
            lines += self._add(piece)
            lines += self.finish()
        return lines + self._add(rest)

    def finish(self) -> list[bytes | None]:
        """Called at LF and at the end of the stream: return the buffered line, if any."""
        line = bytes(self.incomplete).removesuffix(b"\r")
        self.incomplete.clear()
        if self.discarding:
            self.discarding = False
            return []
        if not self.started:
            line = line.removeprefix(_BOM)
            self.started = True
        if len(line) > self.limit:
            return [None]
        return [line] if line.strip(b" \t\r") else []

    def _add(self, piece: bytes) -> list[bytes | None]:
        if self.discarding:
            return []
        self.incomplete += piece
        if len(self.incomplete) <= self.limit + _MARGIN:
            return []
        self.incomplete.clear()
        self.discarding = self.started = True
        return [None]


def line(message: bytes) -> bytes:
    """Return ``message`` with its line end."""
    return message + b"\n"
