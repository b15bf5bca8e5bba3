"""Read a registry hive in memory with python-registry. The bytes are not trusted.

Each access to a key or value counts. Loops over them pause from time to time, and end with `TooLarge` when the hive
exceeds its limit. Nothing recurses.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from Registry import RegistryParse

from tmkb.providers.operation import Pause
from tmkb.sysmcp import times
from tmkb.sysmcp.faults import Corrupt, TooLarge
from tmkb.sysmcp.registry import keypath
from tmkb.sysmcp.registry.value import ONE_CELL

Item = TypeVar("Item", "Key", "Value")
_HEADER = 4096
_INLINE = 0x80000000  # bit of a size: the offset field holds the data itself
_PAUSE = 256  # cells, which take about 5 ms
_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)


class Hive:
    """A hive; `is_dirty` if its last change was not completed. Raises Corrupt."""

    def __init__(self, data: bytearray, limit: int) -> None:
        """``limit``: maximum number of cells to read."""
        if len(data) <= _HEADER:
            raise Corrupt
        with _parsing():
            self.block = RegistryParse.REGFBlock(data, 0, False)
            self.is_dirty = not (self.block.validate_sequence_numbers() and self.block.validate_checksum())
            self.root = Key(self, self.block.first_key())
        self.left = limit

    def trail(self, names: list[str]) -> Generator[Pause, None, list[Key]]:
        """Return the keys on the path ``names``, from the root to the last one that exists."""
        keys = [self.root]
        for name in names:
            key = yield from keys[-1].subkey(name)
            if key is None:
                break
            keys.append(key)
        return keys

    def resolve(self, names: list[str]) -> Generator[Pause, None, list[str]]:
        """Return ``names`` with CurrentControlSet replaced by the selected control set."""
        return self._resolve(self.root, names)

    def _resolve(self, system: Key, names: list[str]) -> Generator[Pause, None, list[str]]:
        """Resolve ``names`` below ``system``, the parent of the control sets."""
        if not names or keypath.folded(names[0]) != "CURRENTCONTROLSET":
            return names
        select = yield from system.subkey("Select")
        current = (yield from select.value("Current")) if select else None
        number = int.from_bytes(current.data(4), "little") if current else 0
        return [f"ControlSet{number:03d}", *names[1:]]

    def count_cell(self) -> bool:
        """Count a cell; return whether to pause. Raises TooLarge."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge
        return self.left % _PAUSE == 0


class Key:
    """A key of a hive."""

    def __init__(self, hive: Hive, record: Any) -> None:
        self.hive = hive
        self.record = record
        with _parsing():
            self.name = _name(record, 0x48, 0x4C, record.has_ascii_name())

    @property
    def subkey_count(self) -> int:
        """The number of subkeys in its record."""
        with _parsing():
            return int(self.record.subkey_number())

    @property
    def value_count(self) -> int:
        """The number of values in its record."""
        with _parsing():
            return int(self.record.values_number())

    @property
    def offset(self) -> int:
        """The offset of its cell, counted from the first bin."""
        return int(self.record.offset()) - _HEADER - 4

    @property
    def written(self) -> str | None:
        """The time of its last change in ISO 8601; None if it is invalid."""
        with _parsing():
            return from_filetime(self.record.unpack_qword(4))

    def subkeys(self) -> Iterator[Key | None]:
        """Yield the subkeys in their order, and None before each nested list."""
        if self.subkey_count:
            with _parsing():
                for record in _direct(self.record.subkey_list()):
                    yield None if record is None else Key(self.hive, record)

    def values(self) -> Iterator[Value]:
        """Yield the values in their order."""
        if self.value_count:
            with _parsing():
                for record in self.record.values_list().values():
                    yield Value(self.hive, record)

    def subkey(self, name: str) -> Generator[Pause, None, Key | None]:
        """Return the subkey ``name``, compared without case."""
        return _find(self.hive, self.subkeys(), name)

    def value(self, name: str) -> Generator[Pause, None, Value | None]:
        """Return the value ``name``, compared without case; the default value is named ""."""
        return _find(self.hive, self.values(), name)


class Value:
    """A value: its name, the number of its type, and its size as recorded."""

    def __init__(self, hive: Hive, record: Any) -> None:
        self.hive = hive
        self.record = record
        with _parsing():
            self.name = _name(record, 2, 0x14, record.has_ascii_name())
            self.type: int = record.unpack_dword(0xC)
            self.size: int = record.data_length()

    def data(self, limit: int) -> bytes:
        """Return at most ``limit`` bytes; fewer than `size` also if the hive lacks them."""
        length = min(self.size, limit)
        with _parsing():
            if self.record.raw_data_length() & _INLINE:
                return bytes(self.record.unpack_binary(8, min(length, 4)))
            cell = _cell(self.record, self.record.unpack_dword(8))
            if self.size <= ONE_CELL or cell.data_id() != b"db":
                return _content(cell, length)
            offsets, data = _cell(self.record, cell.unpack_dword(8)), b""
            for index in range(min(cell.unpack_word(6), -(-length // ONE_CELL))):
                self.hive.count_cell()
                segment = _cell(self.record, offsets.unpack_dword(4 + 4 * index))
                data += _content(segment, min(ONE_CELL, length - len(data)))
            return data


def from_filetime(ticks: int) -> str | None:
    """Convert a time of Windows to ISO 8601; None if it is outside the calendar."""
    try:
        return times.isoformat(_EPOCH + datetime.timedelta(microseconds=ticks // 10), "microseconds")
    except OverflowError:
        return None


def select(
    hive: Hive,
    items: Iterator[Item | None],
    limit: int,
    first: int = 0,
    matches: Callable[[Item], bool] = lambda _: True,
) -> Generator[Pause, None, list[Item]]:
    """Return the ``items`` that match, from number ``first`` on, at most ``limit``. Raises TooLarge."""
    selected: list[Item] = []
    for item in items:
        if hive.count_cell():
            yield Pause(0)
        if item is None or not matches(item):
            continue
        if first > 0:
            first -= 1
            continue
        selected.append(item)
        if len(selected) == limit:
            break
    return selected


def _find(hive: Hive, items: Iterator[Item | None], name: str) -> Generator[Pause, None, Item | None]:
    wanted = keypath.folded(name)
    selected = yield from select(hive, items, 1, matches=lambda item: keypath.folded(item.name) == wanted)
    return selected[0] if selected else None


@contextmanager
def _parsing() -> Iterator[None]:
    """Turn the errors of the library into Corrupt."""
    try:
        yield
    except (RegistryParse.RegistryException, struct.error, ValueError) as error:
        raise Corrupt from error


def _direct(subkeys: Any) -> Iterator[Any]:
    """Yield the records of all subkeys, and None for each nested list, as there may be many empty ones.

    A list of lists must contain lists of keys only, so there are no cycles.
    """
    if not isinstance(subkeys, RegistryParse.RIRecord):
        yield from subkeys.keys()
        return
    for index in range(subkeys.unpack_word(2)):
        yield None
        nested = _cell(subkeys, subkeys.unpack_dword(4 + 4 * index)).child()
        if not isinstance(nested, RegistryParse.DirectSubkeyList):
            raise Corrupt
        yield from nested.keys()


def _cell(record: Any, offset: int) -> Any:
    return RegistryParse.HBINCell(record._buf, record.abs_offset_from_hbin_offset(offset), record)


def _content(cell: Any, limit: int) -> bytes:
    return bytes(cell.unpack_binary(4, max(0, min(limit, cell.size() - 4))))


def _name(record: Any, size: int, offset: int, is_latin: bool) -> str:
    """Decode a name as Windows does; the library would take Latin-1 for Windows-1252."""
    raw: bytes = record.unpack_string(offset, record.unpack_word(size))
    return raw.decode("latin-1") if is_latin else raw.decode("utf-16-le", "replace")
