"""Read regular files: matching lines of a text, and the bytes for a hash."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tmkb.sysmcp.faults import Changed, TooLarge

_BLOCK = 65536  # bytes per read
_HEAD = 1024  # a zero byte in these first bytes marks a binary file


class Binary(Exception):
    """The file is not text."""


def read_text(fd: int, size: int, limit: int) -> str:
    """Return the text of an open file of ``size`` bytes; replace invalid UTF-8. Raises TooLarge, Binary, OSError."""
    if size > limit:
        raise TooLarge
    blocks: list[bytes] = []
    for block in _blocks(fd, limit):
        if not blocks and b"\0" in block[:_HEAD]:
            raise Binary
        blocks.append(block)
    return b"".join(blocks).decode("utf-8", "replace")


def lines(text: str, wanted: str, fold: Callable[[str], str], limit: int, width: int) -> list[tuple[int, str]]:
    """Return the numbers and texts of the first ``limit`` lines in which ``wanted`` begins.

    A text has ``width`` characters around the match. ``fold`` is applied to both strings before they are compared.
    """
    folded, wanted = fold(text), fold(wanted)
    matches: list[tuple[int, str]] = []
    number, start, at = 1, 0, folded.find(wanted)
    while at >= 0 and len(matches) < limit:
        number += folded.count("\n", start, at)
        start = folded.rfind("\n", 0, at) + 1
        line = text.split("\n", number)[number - 1].removesuffix("\r")
        first = max(0, min(at - start + (len(wanted) - width) // 2, len(line) - width))
        matches.append((number, line[first : first + width]))
        end = folded.find("\n", at)
        at = folded.find(wanted, end + 1) if end >= 0 else -1
    return matches


def stable_blocks(fd: int, limit: int) -> Iterator[bytes]:
    """Yield the bytes of an open file. Raises TooLarge, OSError, and at the end Changed if the file was written."""
    before = os.fstat(fd)
    if before.st_size > limit:
        raise TooLarge
    yield from _blocks(fd, limit)
    after = os.fstat(fd)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise Changed


def _blocks(fd: int, limit: int) -> Iterator[bytes]:
    while block := os.read(fd, _BLOCK):
        limit -= len(block)
        if limit < 0:  # the file grows
            raise TooLarge
        yield block
