"""The registry of the Windows that this runs on, through the standard library. It is looked at as a hive is.

What Windows tells as values of Python is made bytes again, so that values look alike wherever they come from. Keys are
made, never removed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import time

from tmkb.sysmcp.registry import hive, keypath, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Any

    from tmkb.providers.operation import Pause
    from tmkb.schema.values import JsonValue

_LONG = {short: long for long, short in keypath.ROOTS.items()}


class Live(hive.Hive):
    """All below a root such as HKLM. Raises ModuleNotFoundError where there is no Windows; OSError where it refuses."""

    def __init__(self, root: str, most: int) -> None:
        self.windows: Any = importlib.import_module("winreg")
        self.handle = getattr(self.windows, _LONG[root])
        self.is_dirty = False
        self.left = most
        self.root: hive.Key = Key(self, [])

    def resolve(self, names: list[str]) -> Generator[Pause, None, list[str]]:
        """``names`` below the root, likewise; the control sets are below SYSTEM, of HKLM alone."""
        if self.handle is not self.windows.HKEY_LOCAL_MACHINE or keypath.folded(names[0] if names else "") != "SYSTEM":
            return names
        return [names[0], *(yield from self._selected(Key(self, names[:1]), names[1:]))]

    def opened(self, names: Sequence[str]) -> Any:
        """The key at ``names``, to be used with ``with``."""
        access = self.windows.KEY_READ | self.windows.KEY_WOW64_64KEY
        return self.windows.OpenKeyEx(self.handle, keypath.joined(names), 0, access)

    def change(self, names: Sequence[str], row: tuple[str, int, bytes] | None, removed: str | None) -> None:
        """Make the key at ``names`` where there is none, set the value ``row`` there, remove the one called so."""
        access = self.windows.KEY_WRITE | self.windows.KEY_WOW64_64KEY
        with self.windows.CreateKeyEx(self.handle, keypath.joined(names), 0, access) as key:
            if row:
                name, type_, raw = row
                self.windows.SetValueEx(key, name, 0, type_, _native(value.type_name(type_), raw))
            if removed is not None:
                self.windows.DeleteValue(key, removed)


class Key(hive.Key):
    """One key, opened for each look: some that are listed must not be."""

    def __init__(self, hive: Live, names: Sequence[str]) -> None:
        self.hive: Live = hive
        self.names = names
        self.name = names[-1] if names else ""

    @property
    def subkey_count(self) -> int:
        """How many keys are right below."""
        return int(self._about()[0])

    @property
    def value_count(self) -> int:
        """How many values it has."""
        return int(self._about()[1])

    @property
    def written(self) -> str | None:
        """When it was last written."""
        return hive.moment(self._about()[2])

    def subkeys(self) -> Iterator[hive.Key]:
        """The keys right below."""
        for index in range(self.subkey_count):
            with self.hive.opened(self.names) as key:
                name = self.hive.windows.EnumKey(key, index)
            yield Key(self.hive, [*self.names, name])

    def values(self) -> Iterator[hive.Value]:
        """Its values."""
        for index in range(self.value_count):
            with self.hive.opened(self.names) as key:
                yield Value(*self.hive.windows.EnumValue(key, index))

    def _about(self) -> tuple[int, int, int]:
        with self.hive.opened(self.names) as key:
            subkeys, values, ticks = self.hive.windows.QueryInfoKey(key)
        return subkeys, values, ticks


class Value(hive.Value):
    """One value, as Windows tells it."""

    def __init__(self, name: str, told: JsonValue | bytes, type_: int) -> None:
        self.name = name
        self.type = type_
        self.raw = _bytes(value.type_name(type_), told)
        self.size = len(self.raw)

    def data(self, most: int) -> bytes:
        """Its bytes, at most ``most``."""
        return self.raw[:most]


def save(folder: str, path: str, before: JsonValue, keep: int) -> str:
    """Write down a value of the key ``path`` as it was ``before``; of such files the newest ``keep`` stay.

    The name of the file. Raises OSError.
    """
    name = f"live.{time.time_ns():020d}.json"
    with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
        json.dump({"path": path, "before": before}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    saved = sorted(each for each in os.listdir(folder) if re.fullmatch(r"live\.\d{20}\.json", each))
    for old in saved[:-keep]:
        os.unlink(os.path.join(folder, old))
    return name


def _bytes(type_: str, told: JsonValue | bytes) -> bytes:
    """What a hive holds for a value of Python."""
    if told is None or isinstance(told, bytes):
        return told or b""
    if isinstance(told, int):
        return told.to_bytes(8 if type_ == "REG_QWORD" else 4, "little")
    texts = [*told, ""] if isinstance(told, list) else [told]
    return "".join(f"{text}\0" for text in texts).encode("utf-16-le", "surrogatepass")


def _native(type_: str, raw: bytes) -> JsonValue | bytes:
    """The value of Python that Windows takes for the bytes of a hive."""
    if type_ in ("REG_DWORD", "REG_QWORD"):
        return int.from_bytes(raw, "little")
    told = value.to_json(type_, raw)
    return raw if "encoding" in told else told["data"]
