"""The live registry of Windows, through the standard library, with the interface of a hive.

Python values of `winreg` are converted to bytes, so that values look the same as in hives. Keys are created, never
removed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from tmkb.providers.operation import Pause
from tmkb.schema.values import JsonValue
from tmkb.sysmcp.registry import hive, keypath, value

_LONG = {short: long for long, short in keypath.ROOTS.items()}


class Live(hive.Hive):
    """A root such as HKLM. Raises ModuleNotFoundError outside Windows, and OSError if Windows refuses access."""

    def __init__(self, root: str, limit: int) -> None:
        self.winreg: Any = importlib.import_module("winreg")
        self.handle = getattr(self.winreg, _LONG[root])
        self.is_dirty = False
        self.left = limit
        self.root: hive.Key = Key(self, [])

    def resolve(self, names: list[str]) -> Generator[Pause, None, list[str]]:
        """Return ``names`` with CurrentControlSet below HKLM\\SYSTEM replaced by the selected control set."""
        if self.handle is not self.winreg.HKEY_LOCAL_MACHINE or keypath.folded(names[0] if names else "") != "SYSTEM":
            return names
        return [names[0], *(yield from self._resolve(Key(self, names[:1]), names[1:]))]

    def open_key(self, names: Sequence[str]) -> Any:
        """Open the key at ``names``; the result is a context manager."""
        access = self.winreg.KEY_READ | self.winreg.KEY_WOW64_64KEY
        return self.winreg.OpenKeyEx(self.handle, keypath.joined(names), 0, access)

    def change(self, names: Sequence[str], row: tuple[str, int, bytes] | None, removed: str | None) -> None:
        """Create the key at ``names`` if it is missing, set the value ``row``, and delete the value ``removed``."""
        access = self.winreg.KEY_WRITE | self.winreg.KEY_WOW64_64KEY
        with self.winreg.CreateKeyEx(self.handle, keypath.joined(names), 0, access) as key:
            if row:
                name, type_, raw = row
                self.winreg.SetValueEx(key, name, 0, type_, _to_native(value.type_name(type_), raw))
            if removed is not None:
                self.winreg.DeleteValue(key, removed)


class Key(hive.Key):
    """A key, opened for each access: a client may list a key that it must not open."""

    def __init__(self, hive: Live, names: Sequence[str]) -> None:
        self.hive: Live = hive
        self.names = names
        self.name = names[-1] if names else ""

    @property
    def subkey_count(self) -> int:
        """The number of subkeys."""
        return self._query()[0]

    @property
    def value_count(self) -> int:
        """The number of values."""
        return self._query()[1]

    @property
    def written(self) -> str | None:
        """The time of its last change."""
        return hive.from_filetime(self._query()[2])

    def subkeys(self) -> Iterator[hive.Key]:
        """Yield the subkeys."""
        for index in range(self.subkey_count):
            with self.hive.open_key(self.names) as key:
                name = self.hive.winreg.EnumKey(key, index)
            yield Key(self.hive, [*self.names, name])

    def values(self) -> Iterator[hive.Value]:
        """Yield the values."""
        for index in range(self.value_count):
            with self.hive.open_key(self.names) as key:
                yield Value(*self.hive.winreg.EnumValue(key, index))

    def _query(self) -> tuple[int, int, int]:
        with self.hive.open_key(self.names) as key:
            subkeys, values, ticks = self.hive.winreg.QueryInfoKey(key)
        return subkeys, values, ticks


class Value(hive.Value):
    """A value, from its Python value."""

    def __init__(self, name: str, native: JsonValue | bytes, type_: int) -> None:
        self.name = name
        self.type = type_
        self.raw = _from_native(value.type_name(type_), native)
        self.size = len(self.raw)

    def data(self, limit: int) -> bytes:
        """Return at most ``limit`` bytes."""
        return self.raw[:limit]


def save(folder: str, path: str, before: JsonValue, keep: int) -> str:
    """Write the previous value of the key ``path`` to a new file, and delete all but the newest ``keep`` such files.

    Returns the name of the file. Raises OSError.
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


def _from_native(type_: str, native: JsonValue | bytes) -> bytes:
    if native is None or isinstance(native, bytes):
        return native or b""
    if isinstance(native, int):
        return native.to_bytes(8 if type_ == "REG_QWORD" else 4, "little")
    texts = [*native, ""] if isinstance(native, list) else [native]
    return "".join(f"{text}\0" for text in texts).encode("utf-16-le", "surrogatepass")


def _to_native(type_: str, raw: bytes) -> JsonValue | bytes:
    if type_ in ("REG_DWORD", "REG_QWORD"):
        return int.from_bytes(raw, "little")
    converted = value.to_json(type_, raw)
    return raw if "encoding" in converted else converted["data"]
