"""Permissions for registry keys: mounts, denied keys, exceptions, and writable keys."""

from __future__ import annotations

from tmkb.errors import ToolError
from tmkb.sysmcp.registry import keypath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Any

    from tmkb.providers.operation import Pause
    from tmkb.sysmcp.registry.hive import Hive

    Path = tuple[str, ...]


class Location:
    """A key: ``names`` below ``mount``, in the hive ``file``; in the live registry if ``file`` is None."""

    def __init__(self, mounts: Mounts, mount: Path, file: str | None, names: Sequence[str], denial: ToolError) -> None:
        self.mounts, self.mount, self.file, self.names, self.denial = mounts, mount, file, [*names], denial
        self.mount_name = keypath.joined(mount)

    def resolve(self, hive: Hive) -> Generator[Pause, None, list[str]]:
        """Return the names of the key in ``hive``.

        Raises ToolError if they are denied: CurrentControlSet is another name of a control set.
        """
        names = yield from hive.resolve(self.names)
        denied = yield from self._in_hive(hive, self.mounts.denied)
        if _is_in(names, denied) and not _is_in(names, (yield from self._in_hive(hive, self.mounts.excepted))):
            raise self.denial
        return names

    def _in_hive(self, hive: Hive, paths: Sequence[Path]) -> Generator[Pause, None, list[list[str]]]:
        """Return the ``paths`` that concern the hive, as names in it; no names mean the whole hive."""
        resolved = []
        for path in paths:
            if keypath.is_below(path, self.mount) or keypath.is_below(self.mount, path):
                resolved.append((yield from hive.resolve([*path[len(self.mount) :]])))
        return resolved


class Mounts:
    """The mounts of the settings. The error for a key that is not permitted does not reveal whether it exists."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        mounts = settings["mounts"]
        files = dict.fromkeys(keypath.ROOTS.values()) if mounts == "live" else mounts
        paths = [(keypath.parse(name), file) for name, file in files.items()]
        self.mounts = sorted(paths, key=lambda mount: len(mount[0]), reverse=True)
        self.denied, self.excepted, self.writable = (
            [keypath.parse(path) for path in settings[key]] for key in ("deny", "read_allow", "write_allow")
        )

    def for_reading(self, path: str) -> Location:
        """Locate a readable key. Raises ToolError."""
        return self._locate(path, [mount for mount, _ in self.mounts])

    def for_writing(self, path: str) -> Location:
        """Locate a writable key. Raises ToolError."""
        return self._locate(path, self.writable)

    def _locate(self, path: str, permitted: Sequence[Path]) -> Location:
        try:
            names = keypath.parse(path)
        except ValueError:
            raise ToolError("bad_key_path", path="arguments.path", received=path) from None
        is_allowed = _is_in(names, permitted) and (not _is_in(names, self.denied) or _is_in(names, self.excepted))
        denial = ToolError("key_not_permitted", permitted=[keypath.joined(each) for each in permitted])
        for mount, file in self.mounts if is_allowed else ():
            if keypath.is_below(names, mount):
                return Location(self, mount, file, names[len(mount) :], denial)
        raise denial


def _is_in(names: Sequence[str], prefixes: Sequence[Sequence[str]]) -> bool:
    return any(keypath.is_below(names, prefix) for prefix in prefixes)
