"""Walk a folder in the byte order of paths; a folder comes before its content.

The walk goes down by descriptors, follows no link, and keeps one descriptor open per level. It only compares names, so
it can start after any path, even a deleted one.
"""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tmkb.sysmcp import faults
from tmkb.sysmcp.files import beneath, content, names

_RUN = 4096  # names that are read and sorted at a time
_REASONS: dict[type[Exception], str] = {
    PermissionError: "permission",
    content.Binary: "binary",
    faults.TooLarge: "tooLarge",
}
_MAX_PATH = 4096  # bytes; content of a folder with a longer path cannot be named


class Entry:
    """A file, folder or link: its displayed name, its displayed path from the start of the walk, and its folder."""

    __slots__ = ("folder", "item", "name", "path")

    def __init__(self, folder: int, item: os.DirEntry[str], prefix: str) -> None:
        """``folder``: descriptor of its folder, valid until the walk continues."""
        self.folder, self.item = folder, item
        self.name = names.display(item.name)
        self.path = prefix + self.name


class Skipped:
    """The number of entries that could not be read, by reason."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("permission", "error", "binary", "tooLarge"), 0)

    def count(self, error: Exception) -> None:
        """Count an entry that failed with ``error``. Deleted entries do not count."""
        if not isinstance(error, FileNotFoundError):
            self.counts[_REASONS.get(type(error), "error")] += 1


class Walk:
    """A walk below the folder ``fd``, which stays open."""

    def __init__(self, fd: int, depth: int, hidden: bool, one_file_system: bool, skipped: Skipped) -> None:
        """``depth``: levels of folders to enter. ``hidden``: include names that start with a dot."""
        self.fd = fd
        self.depth = depth
        self.hidden = hidden
        self.device = os.fstat(fd).st_dev if one_file_system else None
        self.skipped = skipped

    def entries(self, after: Sequence[str] = ()) -> Iterator[Entry | None]:
        """Yield all entries after the path ``after``, and None after each part of a large folder."""
        levels = [self._level(self.fd, "", after)]
        try:
            while levels:
                level = levels[-1]
                for item in level.items:
                    entry = None if item is None else Entry(level.fd, item, level.prefix)
                    is_passed = item is not None and item.name == level.first
                    if not is_passed:
                        yield entry
                    child = self._enter(entry) if entry is not None and len(levels) <= self.depth else None
                    if entry is not None and child is not None:
                        levels.append(self._level(child, entry.path + "/", level.after if is_passed else ()))
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
        return _Level(fd, prefix, first, after[1:], self._sorted(fd, names.sort_key(first)))

    def _sorted(self, fd: int, first: str) -> Iterator[os.DirEntry[str] | None]:
        """Yield the items of a folder from the name ``first`` on, and None after each part that was read."""
        runs: list[list[os.DirEntry[str]]] = []
        try:
            with os.scandir(fd) as items:
                while run := list(islice(items, _RUN)):
                    if not self.hidden:
                        run = [item for item in run if not item.name.startswith(".")]
                    if first:
                        run = [item for item in run if _sort_key(item) >= first]
                    run.sort(key=_sort_key, reverse=True)
                    runs.append(run)
                    yield None
        except OSError as error:
            self.skipped.count(error)
        parts = [_drain(run) for run in runs]
        yield from parts[0] if len(parts) == 1 else heapq.merge(*parts, key=_sort_key)

    def _enter(self, entry: Entry) -> int | None:
        """Open ``entry`` if it is a folder that the walk may enter."""
        try:
            if not entry.item.is_dir(follow_symlinks=False):
                return None
            if len(entry.path.encode()) > _MAX_PATH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            fd = os.open(entry.item.name, beneath.SUBFOLDER, dir_fd=entry.folder)
        except OSError as error:
            self.skipped.count(error)
            return None
        if self.device is not None and os.fstat(fd).st_dev != self.device:
            os.close(fd)
            return None
        return fd


class _Level(NamedTuple):
    """A folder on the current path of the walk."""

    fd: int
    prefix: str
    first: str  # the name of `after` at this level
    after: Sequence[str]  # the names below it
    items: Iterator[os.DirEntry[str] | None]


def _drain(run: list[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    """Yield from the end and free each item at once; freeing very many together would take long."""
    while run:
        yield run.pop()


def _sort_key(item: os.DirEntry[str]) -> str:
    name = item.name
    return name if name.isascii() else names.sort_key(name)
