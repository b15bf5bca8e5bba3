"""All that lies below a folder, in the order of names as bytes, a folder before what is in it.

Goes down by descriptors and follows no link, so it cannot be led elsewhere; holds one open per level. It can begin
after any path, also one that is not there any more, because it compares names and remembers nothing.
"""

from __future__ import annotations

import errno
import heapq
import os
from itertools import islice
from typing import NamedTuple

from tmkb.sysmcp import faults
from tmkb.sysmcp.files import beneath, content, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RUN = 4096  # names that are read and sorted at a time
_REASONS: dict[type[Exception], str] = {
    PermissionError: "permission",
    content.Binary: "binary",
    faults.TooLarge: "tooLarge",
}
_LONGEST = 4096  # bytes of the path of a folder: what lies below one that is longer cannot be named


class Entry:
    """One thing found: its shown name, its shown path from where the walk began, and where it can be opened."""

    __slots__ = ("folder", "item", "name", "path")

    def __init__(self, folder: int, item: os.DirEntry[str], prefix: str) -> None:
        """``folder`` is the descriptor of what it lies in: as good as long as the walk does not go on."""
        self.folder = folder
        self.item = item
        self.name = names.shown(item.name)
        self.path = prefix + self.name

    def status(self) -> os.stat_result:
        """That of a link itself. Raises OSError."""
        return self.item.stat(follow_symlinks=False)

    def open(self) -> int:
        """A descriptor for reading. Raises OSError."""
        return os.open(self.item.name, beneath.READING, dir_fd=self.folder)


class Skipped:
    """How much could not be looked at, by reason."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("permission", "error", "binary", "tooLarge"), 0)

    def count(self, error: Exception) -> None:
        """One more, because of ``error``; what has gone meanwhile is none."""
        if not isinstance(error, FileNotFoundError):
            self.counts[_REASONS.get(type(error), "error")] += 1


class Walk:
    """A walk below the folder ``fd``, which stays open after it."""

    def __init__(self, fd: int, depth: int, hidden: bool, one_file_system: bool, skipped: Skipped) -> None:
        """``depth``: how many levels of folders are entered. ``hidden``: whether names with a dot are seen."""
        self.fd = fd
        self.depth = depth
        self.hidden = hidden
        self.device = os.fstat(fd).st_dev if one_file_system else None
        self.skipped = skipped

    def entries(self, after: Sequence[str] = ()) -> Iterator[Entry | None]:
        """What is found, after the path of these names; None where there is nothing yet, but time has passed."""
        levels = [self._level(self.fd, "", after)]
        try:
            while levels:
                level = levels[-1]
                for item in level.items:
                    entry = None if item is None else Entry(level.fd, item, level.prefix)
                    is_passed = item is not None and item.name == level.first
                    if not is_passed:
                        yield entry
                    inner = self._enter(entry) if entry is not None and len(levels) <= self.depth else None
                    if entry is not None and inner is not None:
                        levels.append(self._level(inner, entry.path + "/", level.after if is_passed else ()))
                        break
                else:
                    levels.pop()
                    if levels:
                        os.close(level.fd)
        finally:
            for level in levels[1:]:
                os.close(level.fd)

    def _level(self, fd: int, prefix: str, after: Sequence[str]) -> _Level:
        first = after[0] if after else ""
        return _Level(fd, prefix, first, after[1:], self._sorted(fd, names.order(first)))

    def _sorted(self, fd: int, first: str) -> Iterator[os.DirEntry[str] | None]:
        """What lies in a folder, from the name ``first`` on; None after each part of it that was read."""
        runs: list[list[os.DirEntry[str]]] = []
        try:
            with os.scandir(fd) as found:
                while run := list(islice(found, _RUN)):
                    if not self.hidden:
                        run = [item for item in run if not item.name.startswith(".")]
                    if first:
                        run = [item for item in run if _order(item) >= first]
                    run.sort(key=_order, reverse=True)
                    runs.append(run)
                    yield None
        except OSError as error:
            self.skipped.count(error)
        parts = [_taken(run) for run in runs]
        yield from parts[0] if len(parts) == 1 else heapq.merge(*parts, key=_order)

    def _enter(self, entry: Entry) -> int | None:
        """A descriptor of the folder that ``entry`` is, if it is one that can be entered."""
        try:
            if not entry.item.is_dir(follow_symlinks=False):
                return None
            if len(entry.path.encode()) > _LONGEST:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            fd = os.open(entry.item.name, beneath.FOLDER | os.O_NOFOLLOW, dir_fd=entry.folder)
        except OSError as error:
            self.skipped.count(error)
            return None
        if self.device is not None and os.fstat(fd).st_dev != self.device:
            os.close(fd)
            return None
        return fd


class _Level(NamedTuple):
    """A folder that is being walked."""

    fd: int
    prefix: str
    first: str  # the name that was looked at before, if any
    after: Sequence[str]  # the path from there on
    items: Iterator[os.DirEntry[str] | None]  # what is left


def _taken(run: list[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    """What is in ``run``, from its end on. Nothing is kept, because to let go of very many at once takes its time."""
    while run:
        yield run.pop()


def _order(item: os.DirEntry[str]) -> str:
    name = item.name
    return name if name.isascii() else names.order(name)
