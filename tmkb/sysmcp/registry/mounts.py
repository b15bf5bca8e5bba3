"""Which keys are served and from where: the mounts, and what is denied, excepted and writable below them."""

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


class Place:
    """Where a key is: ``names`` below ``mount``, in the hive file ``file``, or in the live registry if that is None."""

    def __init__(self, mounts: Mounts, mount: Path, file: str | None, names: Sequence[str], refusal: ToolError) -> None:
        self.mounts = mounts
        self.refusal = refusal
        self.mount = mount
        self.name = keypath.joined(mount)
        self.file = file
        self.names = [*names]

    def resolved(self, hive: Hive) -> Generator[Pause, None, list[str]]:
        """The names of the key in ``hive``. Raises ToolError where they are denied: a control set has two names."""
        names = yield from hive.resolve(self.names)
        denied = yield from self._below(hive, self.mounts.denied)
        if _is_in(names, denied) and not _is_in(names, (yield from self._below(hive, self.mounts.excepted))):
            raise self.refusal
        return names

    def _below(self, hive: Hive, paths: Sequence[Path]) -> Generator[Pause, None, list[list[str]]]:
        """Those of ``paths`` that are in the hive, as names in it; none for one that has all of it."""
        found = []
        for path in paths:
            if keypath.is_below(path, self.mount) or keypath.is_below(self.mount, path):
                found.append((yield from hive.resolve([*path[len(self.mount) :]])))
        return found


class Mounts:
    """Those of the settings. What is not permitted is told alike, whether it is there or not."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        named = settings["mounts"]
        files = dict.fromkeys(keypath.ROOTS.values()) if named == "live" else named
        mounts = [(keypath.parse(name), file) for name, file in files.items()]
        self.mounts = sorted(mounts, key=lambda mount: len(mount[0]), reverse=True)
        self.denied, self.excepted, self.writable = (
            [keypath.parse(path) for path in settings[key]] for key in ("deny", "read_allow", "write_allow")
        )

    def readable(self, path: str) -> Place:
        """Where ``path`` is, if it can be read. Raises ToolError."""
        return self._place(path, [mount for mount, _ in self.mounts])

    def changeable(self, path: str) -> Place:
        """Where ``path`` is, if it can be written. Raises ToolError."""
        return self._place(path, self.writable)

    def _place(self, path: str, permitted: Sequence[Path]) -> Place:
        try:
            names = keypath.parse(path)
        except ValueError:
            raise ToolError("bad_key_path", path="arguments.path", received=path) from None
        allowed = _is_in(names, permitted) and (not _is_in(names, self.denied) or _is_in(names, self.excepted))
        refusal = ToolError("key_not_permitted", permitted=[keypath.joined(each) for each in permitted])
        for mount, file in self.mounts if allowed else ():
            if keypath.is_below(names, mount):
                return Place(self, mount, file, names[len(mount) :], refusal)
        raise refusal


def _is_in(names: Sequence[str], prefixes: Sequence[Sequence[str]]) -> bool:
    return any(keypath.is_below(names, prefix) for prefix in prefixes)
