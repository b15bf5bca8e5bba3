"""Read streams of server-sent events without I/O (HTML Living Standard, 9.2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Events:
    """Reads the bytes of one stream as they arrive."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._parts: list[bytes] = []  # of an incomplete line
        self._is_first_line = True
        self._ended_with_cr = False
        self._data: list[bytes] = []
        self._kind = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each message that ``chunk`` completes; a message is an event of the default kind.

        Events without data are left out: 2025-11-25 begins streams with one.
        """
        if not chunk:
            return []
        if self._ended_with_cr:
            chunk = chunk.removeprefix(b"\n")
        self._ended_with_cr = chunk.endswith(b"\r")
        found: list[bytes] = []
        for line in chunk.splitlines(keepends=True):
            self._parts.append(line.rstrip(b"\r\n"))
            if line.endswith((b"\r", b"\n")):
                found += self._line(b"".join(self._parts))
                self._parts.clear()
        return found

    def _line(self, line: bytes) -> Iterator[bytes]:
        if self._is_first_line:
            line, self._is_first_line = line.removeprefix(_BYTE_ORDER_MARK), False
        name, _, value = line.partition(b":")
        if not line:
            data, kind = b"\n".join(self._data), self._kind
            self._data, self._kind = [], b""
            if data and kind in (b"", b"message"):
                yield data
        elif name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._kind = value.removeprefix(b" ")


def messages(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each message in the ``chunks`` of one stream."""
    events = Events()
    for chunk in chunks:
        yield from events.feed(chunk)
