"""What is looked for among files, and what is told of each that is found."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from tmkb.sysmcp import faults, times
from tmkb.sysmcp.files import content, kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.sysmcp.files.matching import Match
    from tmkb.sysmcp.files.walk import Entry, Skipped


class Words(NamedTuple):
    """What a text has to hold, how much of a file is read for it, and how many lines of what width are told."""

    text: str
    exact: bool
    file_bytes: int
    lines: int
    width: int


class Criteria(NamedTuple):
    """What has to hold of an entry, all of it."""

    match: Match
    on_path: bool  # match the path instead of the name
    kind: str  # a key of `kinds.TESTS`
    sizes: tuple[float, float]  # in bytes, the last included
    times: tuple[float, float]  # in seconds, the last not included
    words: Words | None

    def hit(self, entry: Entry, skipped: Skipped) -> dict[str, Any] | None:
        """What is told of ``entry`` if it is what is looked for. What cannot be looked at is counted in ``skipped``."""
        if not self.match(entry.path if self.on_path else entry.name):
            return None
        try:
            if not kinds.TESTS[self.kind](entry.item):
                return None
            return self._seen(entry) if self.words is None else self._read(entry, self.words)
        except (content.Binary, faults.TooLarge, OSError) as error:
            skipped.count(error)
            return None

    def _seen(self, entry: Entry) -> dict[str, Any] | None:
        status = entry.status()
        return _told(entry, status) if self._fits(status) else None

    def _read(self, entry: Entry, words: Words) -> dict[str, Any] | None:
        if not entry.item.is_file(follow_symlinks=False):
            return None
        fd = entry.open()
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not self._fits(status):
                return None
            text = content.text(fd, status.st_size, words.file_bytes)
        finally:
            os.close(fd)
        found = content.lines(text, words.text, str if words.exact else str.casefold, words.lines, words.width)
        matches = [{"line": number, "text": line} for number, line in found]
        return {**_told(entry, status), "matches": matches} if found else None

    def _fits(self, status: os.stat_result) -> bool:
        (least, most), (first, end) = self.sizes, self.times
        return least <= status.st_size <= most and first <= status.st_mtime < end


def _told(entry: Entry, status: os.stat_result) -> dict[str, Any]:
    modified = times.iso(status.st_mtime)
    return {"name": entry.name, "type": kinds.kind(status), "size": status.st_size, "modified": modified}
