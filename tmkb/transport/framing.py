"""Bytes ↔ messages on a stream: one message a line. Pure; keeps at most one unfinished line, and that bounded.

Specification: Basic / Transports, stdio.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
_SLACK = len(_BOM) + len(b"\r")  # what a line may have beyond its limit until its end has been seen


class TooLarge:
    """Stands for a line that is longer than the limit. Its bytes are not kept."""


TOO_LARGE = TooLarge()


class Lines:
    """Cuts a stream into lines of at most ``limit`` bytes, not counting their end (LF or CR LF). Skips blank ones."""

    __slots__ = ("discarding", "limit", "started", "unfinished")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unfinished = bytearray()  # grows in place, so that a long line in many chunks stays linear
        self.discarding = False  # what follows belongs to a line that was too large
        self.started = False

    def feed(self, chunk: bytes) -> list[bytes | TooLarge]:
        """The lines that ``chunk`` completes. A line is reported as too large as soon as that is known."""
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | TooLarge] = []
        for piece in ends:
            lines += self._add(piece)
            lines += self._end()
        return lines + self._add(rest)

    def finish(self) -> list[bytes | TooLarge]:
        """The last line, where the stream ended without a line end."""
        return self._end()

    def _add(self, piece: bytes) -> list[bytes | TooLarge]:
        if self.discarding:
            return []
        self.unfinished += piece
        if len(self.unfinished) <= self.limit + _SLACK:
            return []
        self.unfinished.clear()
        self.discarding = self.started = True
        return [TOO_LARGE]

    def _end(self) -> list[bytes | TooLarge]:
        line = bytes(self.unfinished).removesuffix(b"\r")
        self.unfinished.clear()
        if self.discarding:
            self.discarding = False
            return []
        if not self.started:
            line = line.removeprefix(_BOM)
            self.started = True
        if len(line) > self.limit:
            return [TOO_LARGE]
        return [line] if line.strip(b" \t\r") else []


def line(message: bytes) -> bytes:
    """``message`` as it goes on the stream."""
    return message + b"\n"
