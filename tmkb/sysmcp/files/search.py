"""The criteria of a search, and the description of each hit."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from tmkb.schema.values import JsonObject
from tmkb.sysmcp import faults, times
from tmkb.sysmcp.files import beneath, content
from tmkb.sysmcp.files.matching import Match
from tmkb.sysmcp.files.walk import Entry, Skipped

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
_HAS_KIND: dict[str, Callable[[os.DirEntry[str]], bool]] = {  # scandir knows the kind on most file systems
    "file": lambda item: item.is_file(follow_symlinks=False),
    "dir": lambda item: item.is_dir(follow_symlinks=False),
    "symlink": lambda item: item.is_symlink(),
    "any": lambda item: True,
}


class Words(NamedTuple):
    """The text that a file must contain, and limits: bytes per file, lines per file, characters per line."""

    text: str
    exact: bool
    file_bytes: int
    lines: int
    width: int


class Criteria(NamedTuple):
    """Conditions that a hit fulfills."""

    match: Match
    on_path: bool  # match the path instead of the name
    kind: str  # file, dir, symlink or any
    sizes: tuple[float, float]  # in bytes, both inclusive
    times: tuple[float, float]  # seconds since 1970, the last exclusive
    words: Words | None

    def check(self, entry: Entry, skipped: Skipped) -> JsonObject | None:
        """Return the description of ``entry`` if it is a hit. Count an entry that cannot be read in ``skipped``."""
        if not self.match(entry.path if self.on_path else entry.name):
            return None
        try:
            if not _HAS_KIND[self.kind](entry.item):
                return None
            if self.words is not None:
                return self._check_content(entry, self.words)
            status = entry.item.stat(follow_symlinks=False)
            return _description(entry, status) if self._fits(status) else None
        except (content.Binary, faults.TooLarge, OSError) as error:
            skipped.count(error)
            return None

    def _check_content(self, entry: Entry, words: Words) -> JsonObject | None:
        if not entry.item.is_file(follow_symlinks=False):
            return None
        with beneath.closing_fd(os.open(entry.item.name, beneath.READ, dir_fd=entry.folder)) as fd:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not self._fits(status):
                return None
            text = content.read_text(fd, status.st_size, words.file_bytes)
        lines = content.lines(text, words.text, str if words.exact else str.casefold, words.lines, words.width)
        if not lines:
            return None
        return {**_description(entry, status), "matches": [{"line": number, "text": line} for number, line in lines]}

    def _fits(self, status: os.stat_result) -> bool:
        (least, most), (start, end) = self.sizes, self.times
        return least <= status.st_size <= most and start <= status.st_mtime < end


def kind(status: os.stat_result) -> str:
    """Return the kind of a file."""
    return _KINDS[stat.S_IFMT(status.st_mode)]


def _description(entry: Entry, status: os.stat_result) -> JsonObject:
    modified = times.from_timestamp(status.st_mtime)
    return {"name": entry.name, "type": kind(status), "size": status.st_size, "modified": modified}
