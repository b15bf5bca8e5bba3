"""Whether a hive is sound wherever a change is going to touch it.

libhivex takes what it is told for true, and ends the process where it is not: so what it will follow is followed here
first. Every cell on the way has to begin where a cell begins, to be in use, to be of its kind, and to be met once.
"""

from __future__ import annotations

import struct

from tmkb.sysmcp.faults import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tmkb.sysmcp.registry.hive import Key

_BASE = 0x1000  # where the first bin begins; places are counted from there
_NONE = 0xFFFFFFFF
_INLINE = 0x80000000
_LONGEST_BIN = 1 << 22  # bytes; no value that is written has as many, and a bin may be all cells of eight


def check(data: bytearray, trail: Sequence[Key], adds_keys: bool) -> None:
    """That of the keys of ``trail``, and of what the last of them has: its subkeys where the change ``adds_keys``, else
    its values. Raises Corrupt.
    """
    try:
        cells = _Cells(data)
        for key in trail:
            cells.take(key.place, b"nk")
        if adds_keys:
            _check_subkeys(cells, trail[-1].place)
        else:
            _check_values(cells, trail[-1].place)
    except struct.error as error:
        raise Corrupt from error


def _check_subkeys(cells: _Cells, place: int) -> None:
    cells.take(cells.number(place, 0x2C), b"sk")  # which a new key has, too
    if count := cells.number(place, 0x14):
        listed = [*_listed(cells, cells.number(place, 0x1C))]
        for each in listed:
            cells.take(each, b"nk")
            cells.within(each, 0x4C + cells.short(each, 0x48))
        if len(listed) != count:
            raise Corrupt


def _check_values(cells: _Cells, place: int) -> None:
    count, listed = cells.number(place, 0x24), cells.number(place, 0x28)
    if count not in (0, _NONE):
        cells.take(listed)
        cells.within(listed, 4 * count)
        for index in range(count):
            _check_value(cells, cells.number(listed, 4 * index))


def _check_value(cells: _Cells, place: int) -> None:
    cells.take(place, b"vk")
    cells.within(place, 0x14 + cells.short(place, 2))
    size = cells.number(place, 4)
    if not size & _INLINE:
        data = cells.number(place, 8)
        if size:
            cells.take(data)
            cells.within(data, size)


def _listed(cells: _Cells, place: int) -> Iterator[int]:
    """The places of the keys that a list of keys, or of such lists, has."""
    kind = cells.take(place, b"lf", b"lh", b"li", b"ri")
    width = 4 if kind in (b"li", b"ri") else 8
    count = cells.short(place, 2)
    cells.within(place, 4 + width * count)
    for index in range(count):
        each = cells.number(place, 4 + width * index)
        if kind != b"ri":
            yield each
        elif cells.kind(each) == b"ri":
            raise Corrupt
        else:
            yield from _listed(cells, each)


class _Cells:
    """The cells of a hive, by the places that the hive has for them. Methods raise Corrupt and struct.error."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.taken: set[int] = set()
        self.starts: dict[int, int] = {}  # page → where its bin begins
        self.known: dict[int, set[int]] = {}  # bin → where its cells begin
        at, end = _BASE, _BASE + struct.unpack_from("<I", data, 0x28)[0]
        while at < end:
            (size,) = struct.unpack_from("<I", data, at + 8)
            if data[at : at + 4] != b"hbin" or size == 0 or size % 0x1000 or at + size > min(end, len(data)):
                raise Corrupt
            self.starts.update(dict.fromkeys(range(at >> 12, at + size >> 12), at))
            at += size

    def take(self, place: int, *kinds: bytes) -> bytes:
        """Meet a cell; its kind, which is one of ``kinds``, if any are given."""
        at = place + _BASE
        start = self.starts.get(at >> 12)
        if start is None or place in self.taken or at not in self._of(start) or self.size(place) < 0:
            raise Corrupt
        self.taken.add(place)
        if kinds and self.kind(place) not in kinds:
            raise Corrupt
        return self.kind(place)

    def within(self, place: int, size: int) -> None:
        """Raises Corrupt where the cell has no room for ``size`` bytes."""
        if size > self.size(place):
            raise Corrupt

    def size(self, place: int) -> int:
        """Bytes in a cell; negative where it is not in use."""
        (size,) = struct.unpack_from("<i", self.data, place + _BASE)
        return int(-size - 4)

    def kind(self, place: int) -> bytes:
        """The two letters that a cell begins with."""
        return bytes(self.data[place + _BASE + 4 : place + _BASE + 6])

    def number(self, place: int, at: int) -> int:
        """The four bytes at ``at`` of a cell."""
        return int(struct.unpack_from("<I", self.data, place + _BASE + 4 + at)[0])

    def short(self, place: int, at: int) -> int:
        """The two bytes at ``at`` of a cell."""
        return int(struct.unpack_from("<H", self.data, place + _BASE + 4 + at)[0])

    def _of(self, start: int) -> set[int]:
        """Where the cells of the bin at ``start`` begin."""
        if start not in self.known:
            (size,) = struct.unpack_from("<I", self.data, start + 8)
            if size > _LONGEST_BIN:
                raise Corrupt
            found = self.known[start] = set()
            at = start + 0x20
            while at < start + size:
                found.add(at)
                (length,) = struct.unpack_from("<i", self.data, at)
                if abs(length) < 8 or length % 8:
                    raise Corrupt
                at += abs(length)
            if at != start + size:
                raise Corrupt
        return self.known[start]
