"""A log that is a text, a line for each entry: with the stamps of RFC 3164 or ISO 8601, after ``<priority>`` or not.

A line without a stamp is an entry without a time. Nothing is guessed from words: where a line names no priority its
level is INFORMATION, and where it names no program its source is the name of the log.
"""

from __future__ import annotations

import calendar
import re
from contextlib import closing
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import NamedTuple

from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logentry import LogEntry
from tmkb.sysmcp.eventlog.logfile import LogFile
from tmkb.sysmcp.eventlog.logquery import LogQuery, LogState, StalePlace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, Scan

_BLOCK = 8192  # bytes that are made lines at a time: at worst as many
_COUNTED = 65536  # bytes whose lines are counted at a time
_NEAR = 8  # blocks in which the first and the last stamp are looked for
_STEP = 1000  # lines that are looked at before anybody else has a turn
_LONGEST = 65536  # bytes of a line; the rest of a longer one is not looked at
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_LINE = re.compile(
    r"(?:<(?P<priority>[0-9]{1,3})>)?"
    r"(?:(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>[0-9]{1,2}) (?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"|(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?))"
    r"(?: [^ ]+ (?P<program>[^ :\[]+)(?:\[[^\]]*\])?:)? ?"
)


class Texts:
    """Text logs by name."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.named: list[Log] = [TextLog(name, path) for name, path in files.items()]

    def logs(self) -> list[Log]:
        """All that are named, whether they are there or not."""
        return self.named


class _Line(NamedTuple):
    """``place`` is right behind it in the direction of reading: bytes and lines that are before that in the file."""

    place: tuple[int, int]
    number: int
    content: bytes


class TextLog:
    """One file. How many lines it has is remembered, so that only what is new is counted."""

    kind = "textlog"

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.counted = (0, 0), 0, 0  # which file, how many bytes of it, and how many lines end in them

    def state(self) -> Generator[None, None, LogState]:
        """Its times are those of the first and the last stamp, if they are near its ends. Raises `Unreadable`."""
        with closing(_Text(self.path)) as text:
            times = []
            for blocks in (text.forwards(0, 0, text.size), text.backwards(text.size, 0)):
                lines = islice(chain.from_iterable(islice(blocks, _NEAR)), _STEP)
                stamped = (self._entry(line, text) for line in lines)
                times += [next((entry.time for entry in stamped if entry.time is not None), None)]
                yield
        return LogState(text.size, *times)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Block by block. Raises `StalePlace` where the file has been replaced."""
        with closing(_Text(self.path)) as text:
            offset, before = self._place(query, text)
            page.newest = [*text.identity, text.size] if query.newest is None else query.newest
            if query.oldest_first:
                end = min(text.size, self._size(query)) if query.after else text.size
                blocks = text.forwards(offset, before, end)
            else:
                if query.after is None:
                    lines_ended = yield from self._count(text)
                    offset, before = text.size, lines_ended + text.ends_open
                blocks = text.backwards(offset, before)
            for lines in blocks:
                yield from self._tell(lines, query, page, text)
                if lines and query.plain and page.full and not query.oldest_first:
                    page.passed(lines[-1].place[1])  # all that are left
                    return
                yield [*text.identity, *lines[-1].place] if lines else None

    def _place(self, query: LogQuery, text: _Text) -> tuple[int, int]:
        match query.after:
            case None:
                return 0, 0
            case [int(device), int(inode), int(offset), int(before)] if (device, inode) == text.identity:
                if 0 <= before <= offset <= text.size and self._size(query) >= 0:
                    return offset, before
        raise StalePlace

    def _size(self, query: LogQuery) -> int:
        """Of the file when the first page was read. Raises `StalePlace`."""
        match query.newest:
            case [int(), int(), int(size)]:
                return size
        raise StalePlace

    def _count(self, text: _Text) -> Generator[None, None, int]:
        """Count the lines that have ended, from where they were counted before; another query may do so meanwhile."""
        file, counted, lines = self.counted
        if file != text.identity or counted > text.size:
            counted = lines = 0
        while counted < text.size and (block := text.read(counted, min(_COUNTED, text.size - counted))):
            counted += len(block)
            lines += block.count(b"\n")
            self.counted = text.identity, counted, lines
            yield
        return lines

    def _tell(self, lines: list[_Line], query: LogQuery, page: LogPage, text: _Text) -> Scan:
        if query.plain and not page.wants(len(lines)):
            page.passed(len(lines))
            return
        for number, line in enumerate(lines):
            if number % _STEP == _STEP - 1:
                yield [*text.identity, *lines[number - 1].place]
            entry = self._entry(line, text)
            if not (
                query.admits(entry.level, entry.source, entry.event_id)
                and query.within(entry.time)
                and query.in_message(entry.message)
            ):
                continue
            page.take(entry, [*text.identity, *line.place]) if page.wants() else page.passed(1)

    def _entry(self, line: _Line, text: _Text) -> LogEntry:
        content = line.content.decode("utf-8", "replace").rstrip("\r")
        found = _LINE.match(content)
        if found is None:
            return LogEntry(line.number, self.name, "INFORMATION", self.name, 0, content, None, {})
        priority = found["priority"]
        level = logentry.SEVERITIES[int(priority) % 8] if priority else "INFORMATION"
        source, message = found["program"] or self.name, content[found.end() :]
        return LogEntry(line.number, self.name, level, source, 0, message, _time(found, text.modified), {})


def _time(found: re.Match[str], modified: datetime) -> int | None:
    """A stamp that names no year is of the last one in which it is not after the file was written."""
    try:
        if found["iso"]:
            return logentry.of(datetime.fromisoformat(found["iso"].replace(",", ".")))
        month, clock = _MONTHS.index(found["month"]) + 1, found["clock"]
        latest = modified + timedelta(days=1)
        for year in range(latest.year, latest.year - 9, -1):  # February 29 can be eight years apart
            if (month, int(found["day"])) == (2, 29) and not calendar.isleap(year):
                continue
            time = datetime.fromisoformat(f"{year}-{month:02}-{int(found['day']):02} {clock}")
            if time <= latest:
                return logentry.of(time)
    except (ValueError, OverflowError, OSError):
        pass
    return None


class _Text(LogFile):
    """The lines of a file, as far as it reached when it was opened."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.identity = self.stat.st_dev, self.stat.st_ino
        self.modified = datetime.fromtimestamp(self.stat.st_mtime)

    @property
    def ends_open(self) -> bool:
        """Whether its last line has no end yet."""
        return self.size > 0 and self.read(self.size - 1, 1) != b"\n"

    def forwards(self, offset: int, before: int, end: int) -> Iterator[list[_Line]]:
        """The lines from ``offset`` on, before which there are so many others."""
        begun = b""
        while offset < end and (block := self.read(offset, min(_BLOCK, end - offset))):
            lines = []
            pieces = block.split(b"\n")
            for piece in pieces[:-1]:
                offset += len(piece) + 1
                before += 1
                lines.append(_Line((offset, before), before, (begun + piece)[:_LONGEST]))
                begun = b""
            offset += len(pieces[-1])
            begun = (begun + pieces[-1])[:_LONGEST]
            if begun and offset >= end:
                lines.append(_Line((offset, before + 1), before + 1, begun))
            yield lines

    def backwards(self, offset: int, before: int) -> Iterator[list[_Line]]:
        """The lines that end at ``offset`` or earlier, the last first; there are ``before`` of them."""
        tail: bytes | None = None  # of a line whose beginning has not been reached; at first there may be none
        while offset > 0:
            size = min(offset, _BLOCK)
            block = self.read(offset - size, size)
            if len(block) < size:  # the file has become shorter
                return
            lines = []
            first, *others = block.split(b"\n")
            for piece in reversed(others):
                offset -= len(piece)
                if piece or tail is not None:
                    lines.append(_Line((offset, before - 1), before, (piece + (tail or b""))[:_LONGEST]))
                    before -= 1
                tail = b""
                offset -= 1
            offset -= len(first)
            if first or tail is not None:
                tail = (first + (tail or b""))[:_LONGEST]
            if offset == 0 and tail is not None:
                lines.append(_Line((0, before - 1), before, tail))
            yield lines
