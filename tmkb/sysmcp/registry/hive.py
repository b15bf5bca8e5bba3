"""A registry hive in memory, read with python-registry. The bytes are not trusted.

Keys and values are looked at one by one, and each look counts: loops over them give way now and then, and end with
`TooLarge` where a hive makes more of itself than it may. Nothing recurses.
"""

from __future__ import annotations

import datetime
import struct
from contextlib import contextmanager

from Registry import RegistryParse

from tmkb.providers.operation import Pause
from tmkb.sysmcp import times
from tmkb.sysmcp.faults import Corrupt, TooLarge
from tmkb.sysmcp.registry import keypath
from tmkb.sysmcp.registry.value import ONE_CELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any, TypeVar

    Thing = TypeVar("Thing", "Key", "Value")

_HEADER = 4096
_INLINE = 0x80000000  # a size with this bit: the data stands where its place would be told
_PAUSE = 256  # looks, which take about 5 ms
_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)


class Hive:
    """A hive that can be read; `is_dirty` where its last change was not completed. Raises Corrupt."""

    def __init__(self, data: bytearray, most: int) -> None:
        """``most``: cells that may be looked at."""
        if len(data) <= _HEADER:
            raise Corrupt
        with _reading():
            self.block = RegistryParse.REGFBlock(data, 0, False)
            self.is_dirty = not (self.block.validate_sequence_numbers() and self.block.validate_checksum())
            self.root = Key(self, self.block.first_key())
        self.left = most

    def trail(self, names: list[str]) -> Generator[Pause, None, list[Key]]:
        """The keys on the way down ``names``, from the root to the first that does not have the next."""
        keys = [self.root]
        for name in names:
            key = yield from keys[-1].subkey(name)
            if key is None:
                break
            keys.append(key)
        return keys

    def resolve(self, names: list[str]) -> Generator[Pause, None, list[str]]:
        """``names`` below the root, with the control set that is selected for CurrentControlSet."""
        return self._selected(self.root, names)

    def _selected(self, system: Key, names: list[str]) -> Generator[Pause, None, list[str]]:
        """The same below ``system``, the key that has the control sets."""
        if not names or keypath.folded(names[0]) != "CURRENTCONTROLSET":
            return names
        select = yield from system.subkey("Select")
        current = (yield from select.value("Current")) if select else None
        number = int.from_bytes(current.data(4), "little") if current else 0
        return [f"ControlSet{number:03d}", *names[1:]]

    def look(self) -> bool:
        """Count one cell; whether it is time to give way. Raises TooLarge."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge
        return self.left % _PAUSE == 0


class Key:
    """One key of a hive."""

    def __init__(self, hive: Hive, record: Any) -> None:
        self.hive = hive
        self.record = record
        with _reading():
            self.name = _name(record, 0x48, 0x4C, record.has_ascii_name())

    @property
    def subkey_count(self) -> int:
        """How many keys it says are right below."""
        with _reading():
            return int(self.record.subkey_number())

    @property
    def value_count(self) -> int:
        """How many values it says it has."""
        with _reading():
            return int(self.record.values_number())

    @property
    def place(self) -> int:
        """Where its cell is, as the hive counts."""
        return int(self.record.offset()) - _HEADER - 4

    @property
    def written(self) -> str | None:
        """When it was last written, in ISO 8601; None for a time that is none."""
        with _reading():
            return moment(self.record.unpack_qword(4))

    def subkeys(self) -> Iterator[Key | None]:
        """The keys right below, in their order; None before each further list that has them."""
        if self.subkey_count:
            with _reading():
                for record in _direct(self.record.subkey_list()):
                    yield None if record is None else Key(self.hive, record)

    def values(self) -> Iterator[Value]:
        """Its values, in their order."""
        if self.value_count:
            with _reading():
                for record in self.record.values_list().values():
                    yield Value(self.hive, record)

    def subkey(self, name: str) -> Generator[Pause, None, Key | None]:
        """The subkey of that name, in any case."""
        return _named(self.hive, self.subkeys(), name)

    def value(self, name: str) -> Generator[Pause, None, Value | None]:
        """The value of that name, in any case; the default one is called ""."""
        return _named(self.hive, self.values(), name)


class Value:
    """One value of a key: its name, the number of its type, and the bytes that it says it has."""

    def __init__(self, hive: Hive, record: Any) -> None:
        self.hive = hive
        self.record = record
        with _reading():
            self.name = _name(record, 2, 0x14, record.has_ascii_name())
            self.type: int = record.unpack_dword(0xC)
            self.size: int = record.data_length()

    def data(self, most: int) -> bytes:
        """Its bytes, at most ``most``; fewer than `size` also where the hive does not have them."""
        wanted = min(self.size, most)
        with _reading():
            place = self.record.unpack_dword(8)
            if self.record.raw_data_length() & _INLINE:
                return bytes(self.record.unpack_binary(8, min(wanted, 4)))
            cell = _cell(self.record, place)
            if self.size > ONE_CELL and cell.data_id() == b"db":
                return self._segments(cell, wanted)
            return _content(cell, wanted)

    def _segments(self, cell: Any, wanted: int) -> bytes:
        places = _cell(self.record, cell.unpack_dword(8))
        data = b""
        for index in range(min(cell.unpack_word(6), -(-wanted // ONE_CELL))):
            self.hive.look()
            data += _content(_cell(self.record, places.unpack_dword(4 + 4 * index)), min(ONE_CELL, wanted - len(data)))
        return data


def moment(ticks: int) -> str | None:
    """A time as Windows counts it, in ISO 8601; None for one that is none."""
    try:
        time = _EPOCH + datetime.timedelta(microseconds=ticks // 10)
    except OverflowError:
        return None
    return times.written(time, "microseconds")


def page(hive: Hive, things: Iterator[Thing | None], first: int, most: int) -> Generator[Pause, None, list[Thing]]:
    """Those ``things`` from number ``first`` on, at most ``most``."""
    chosen: list[Thing] = []
    for thing in things:
        if hive.look():
            yield Pause(0)
        if thing is None:
            continue
        if first > 0:
            first -= 1
            continue
        chosen.append(thing)
        if len(chosen) == most:
            break
    return chosen


def _named(hive: Hive, things: Iterator[Thing | None], name: str) -> Generator[Pause, None, Thing | None]:
    wanted = keypath.folded(name)
    for thing in things:
        if hive.look():
            yield Pause(0)
        if thing is not None and keypath.folded(thing.name) == wanted:
            return thing
    return None


@contextmanager
def _reading() -> Iterator[None]:
    """What the library raises over bytes that are no hive, told as Corrupt."""
    try:
        yield
    except (RegistryParse.RegistryException, struct.error, ValueError) as error:
        raise Corrupt from error


def _direct(subkeys: Any) -> Iterator[Any]:
    """The records of all subkeys. Lists of lists hold lists of keys, never further lists: so there are no cycles.

    None for each list in a list, as there may be very many and no key in them.
    """
    if not isinstance(subkeys, RegistryParse.RIRecord):
        yield from subkeys.keys()
        return
    for index in range(subkeys.unpack_word(2)):
        yield None
        below = _cell(subkeys, subkeys.unpack_dword(4 + 4 * index)).child()
        if not isinstance(below, RegistryParse.DirectSubkeyList):
            raise Corrupt
        yield from below.keys()


def _cell(record: Any, place: int) -> Any:
    return RegistryParse.HBINCell(record._buf, record.abs_offset_from_hbin_offset(place), record)


def _content(cell: Any, most: int) -> bytes:
    return bytes(cell.unpack_binary(4, max(0, min(most, cell.size() - 4))))


def _name(record: Any, size: int, place: int, is_latin: bool) -> str:
    """A name as Windows reads it (the library takes Latin-1 for its own Windows-1252)."""
    raw: bytes = record.unpack_string(place, record.unpack_word(size))
    return raw.decode("latin-1") if is_latin else raw.decode("utf-16-le", "replace")
