"""Check the parts of a hive that a change will touch.

libhivex trusts offsets and crashes on wrong ones, so this module follows them first. Each cell on the way must start
where a cell starts, be in use, have the expected kind, and be met only once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from tmkb.sysmcp.faults import Corrupt
from tmkb.sysmcp.registry.hive import Key

_BASE = 0x1000  # the first bin; offsets of cells are relative to it
_NONE = 0xFFFFFFFF
_INLINE = 0x80000000
_MAX_BIN = 1 << 22  # bytes, which may be cells of eight; no value that can be written needs a larger bin


def check(data: bytearray, trail: Sequence[Key], adds_keys: bool) -> None:
    """Check the keys of ``trail``, and the content of the last one: subkeys if ``adds_keys``, else values.

    Raises Corrupt.
    """
    try:
        cells = _Cells(data)
        for key in trail:
            cells.take(key.offset, b"nk")
        (_check_subkeys if adds_keys else _check_values)(cells, trail[-1].offset)
    except struct.error as error:
        raise Corrupt from error


def _check_subkeys(cells: _Cells, key: int) -> None:
    cells.take(cells.dword(key, 0x2C), b"sk")  # a new key refers to it
    if count := cells.dword(key, 0x14):
        subkeys = [*_subkeys(cells, cells.dword(key, 0x1C))]
        for subkey in subkeys:
            cells.take(subkey, b"nk")
            cells.require(subkey, 0x4C + cells.word(subkey, 0x48))
        if len(subkeys) != count:
            raise Corrupt


def _check_values(cells: _Cells, key: int) -> None:
    count, values = cells.dword(key, 0x24), cells.dword(key, 0x28)
    if count in (0, _NONE):
        return
    cells.take(values)
    cells.require(values, 4 * count)
    for index in range(count):
        value = cells.dword(values, 4 * index)
        cells.take(value, b"vk")
        cells.require(value, 0x14 + cells.word(value, 2))
        size = cells.dword(value, 4)
        if size and not size & _INLINE:
            data = cells.dword(value, 8)
            cells.take(data)
            cells.require(data, size)


def _subkeys(cells: _Cells, offset: int) -> Iterator[int]:
    """Yield the offsets of the keys in a list of keys, or in a list of such lists."""
    kind = cells.take(offset, b"lf", b"lh", b"li", b"ri")
    width = 4 if kind in (b"li", b"ri") else 8
    count = cells.word(offset, 2)
    cells.require(offset, 4 + width * count)
    for index in range(count):
        item = cells.dword(offset, 4 + width * index)
        if kind != b"ri":
            yield item
        elif cells.kind(item) == b"ri":
            raise Corrupt
        else:
            yield from _subkeys(cells, item)


class _Cells:
    """The cells of a hive, by their offsets. Methods raise Corrupt and struct.error."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.visited: set[int] = set()
        self.bins: dict[int, int] = {}  # page → start of its bin
        self.starts: dict[int, set[int]] = {}  # start of a bin → starts of its cells
        at, end = _BASE, _BASE + struct.unpack_from("<I", data, 0x28)[0]
        while at < end:
            (size,) = struct.unpack_from("<I", data, at + 8)
            if data[at : at + 4] != b"hbin" or size == 0 or size % 0x1000 or at + size > min(end, len(data)):
                raise Corrupt
            self.bins.update(dict.fromkeys(range(at >> 12, at + size >> 12), at))
            at += size

    def take(self, offset: int, *kinds: bytes) -> bytes:
        """Visit a cell of one of ``kinds``, or of any kind, and return its kind."""
        start = self.bins.get((offset + _BASE) >> 12)
        if start is None or offset in self.visited or offset + _BASE not in self._cells_of(start):
            raise Corrupt
        if self.size(offset) < 0 or (kinds and self.kind(offset) not in kinds):
            raise Corrupt
        self.visited.add(offset)
        return self.kind(offset)

    def require(self, offset: int, size: int) -> None:
        """Raise Corrupt if the cell is smaller than ``size`` bytes."""
        if size > self.size(offset):
            raise Corrupt

    def size(self, offset: int) -> int:
        """Return the bytes in a cell; negative if it is not in use."""
        (size,) = struct.unpack_from("<i", self.data, offset + _BASE)
        return int(-size - 4)

    def kind(self, offset: int) -> bytes:
        """Return the first two bytes of a cell."""
        return bytes(self.data[offset + _BASE + 4 : offset + _BASE + 6])

    def dword(self, offset: int, at: int) -> int:
        """Return four bytes of a cell as a number."""
        return int(struct.unpack_from("<I", self.data, offset + _BASE + 4 + at)[0])

    def word(self, offset: int, at: int) -> int:
        """Return two bytes of a cell as a number."""
        return int(struct.unpack_from("<H", self.data, offset + _BASE + 4 + at)[0])

    def _cells_of(self, start: int) -> set[int]:
        """Return where the cells of the bin at ``start`` start."""
        if start not in self.starts:
            (size,) = struct.unpack_from("<I", self.data, start + 8)
            if size > _MAX_BIN:
                raise Corrupt
            starts = self.starts[start] = set()
            at = start + 0x20
            while at < start + size:
                starts.add(at)
                (length,) = struct.unpack_from("<i", self.data, at)
                if abs(length) < 8 or length % 8:
                    raise Corrupt
                at += abs(length)
            if at != start + size:
                raise Corrupt
        return self.starts[start]
