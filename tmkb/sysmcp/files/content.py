"""What is in a regular file: lines of a text that hold some words, and its bytes."""

from __future__ import annotations

import os

from tmkb.sysmcp.faults import Changed, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK = 65536  # bytes per read
_HEAD = 1024  # bytes in which a zero byte says that a file is no text


class Binary(Exception):
    """A file that is no text."""


def text(fd: int, size: int, most: int) -> str:
    """The text of an open file of that size; what is not UTF-8 in it is replaced. Raises TooLarge, Binary, OSError."""
    if size > most:
        raise TooLarge
    blocks: list[bytes] = []
    for block in _blocks(fd, most):
        if not blocks and b"\0" in block[:_HEAD]:
            raise Binary
        blocks.append(block)
    return b"".join(blocks).decode("utf-8", "replace")


def lines(text: str, wanted: str, fold: Callable[[str], str], most: int, width: int) -> list[tuple[int, str]]:
    """The first ``most`` lines in which ``wanted`` begins: their numbers, and ``width`` characters around it.

    ``fold`` is applied to both before they are compared.
    """
    folded, wanted = fold(text), fold(wanted)
    found: list[tuple[int, str]] = []
    number, start, at = 1, 0, folded.find(wanted)
    while at >= 0 and len(found) < most:
        number += folded.count("\n", start, at)
        start = folded.rfind("\n", 0, at) + 1
        line = text.split("\n", number)[number - 1].removesuffix("\r")
        first = max(0, min(at - start + (len(wanted) - width) // 2, len(line) - width))
        found.append((number, line[first : first + width]))
        end = folded.find("\n", at)
        at = folded.find(wanted, end + 1) if end >= 0 else -1  # the newline ends this line
    return found


def unchanged(fd: int, most: int) -> Iterator[bytes]:
    """The bytes of an open file, in blocks. Raises TooLarge, OSError, and Changed at the end."""
    before = os.fstat(fd)
    if before.st_size > most:
        raise TooLarge
    yield from _blocks(fd, most)
    after = os.fstat(fd)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise Changed


def _blocks(fd: int, most: int) -> Iterator[bytes]:
    """What is in an open file, which may grow meanwhile. Raises TooLarge, OSError."""
    while block := os.read(fd, _BLOCK):
        most -= len(block)
        if most < 0:
            raise TooLarge
        yield block
