"""Text logs with one entry per line: timestamps of RFC 3164 or ISO 8601, optionally after ``<priority>``.

A line without a timestamp is an entry without a time. Words in a message are not interpreted: without a priority the
level is INFORMATION, and without a program the source is the name of the log.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import NamedTuple

from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logentry import LogEntry
from tmkb.sysmcp.eventlog.logquery import Log, LogFile, LogPage, LogQuery, LogState, Scan, StalePosition

_BLOCK = 8192  # bytes to split into lines at a time, at most one line per byte
_COUNT_BLOCK = 65536  # bytes whose lines are counted at a time
_EDGE_BLOCKS = 8  # blocks at each end in which `state` looks for a timestamp
_STEP = 1000  # lines between two yields
_MAX_LINE = 65536  # bytes; the rest of a line is ignored
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_LINE = re.compile(
    r"(?:<(?P<priority>[0-9]{1,3})>)?"
    r"(?:(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>[0-9]{1,2}) (?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"|(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?))"
    r"(?: [^ ]+ (?P<program>[^ :\[]+)(?:\[[^\]]*\])?:)? ?"
)


class TextLogs:
    """Text logs by name."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.configured: list[Log] = [TextLog(name, path) for name, path in files.items()]

    def logs(self) -> list[Log]:
        """Return all configured logs, even if their file is missing."""
        return self.configured


class _Line(NamedTuple):
    """A line. ``position``: bytes and lines of the file before the end of the line, in the direction of reading."""

    position: tuple[int, int]
    number: int
    content: bytes


class TextLog:
    """One file. The number of its lines is kept, so that only new lines are counted."""

    kind = "textlog"

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.counted = (0, 0), 0, 0  # identity of the file, bytes, lines that end in these bytes

    def state(self) -> Generator[None, None, LogState]:
        """Return the size, and the first and last timestamps if they are near the ends. Raises Unreadable."""
        with closing(_Text(self.path)) as text:
            times = []
            for blocks in (text.forwards(0, 0, text.size), text.backwards(text.size, 0)):
                lines = islice(chain.from_iterable(islice(blocks, _EDGE_BLOCKS)), _STEP)
                entries = (self._entry(line, text) for line in lines)
                times += [next((entry.time for entry in entries if entry.time is not None), None)]
                yield
        return LogState(text.size, *times)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Examine block by block. Raises StalePosition if the file was replaced."""
        with closing(_Text(self.path)) as text:
            offset, before = self._start(query, text)
            page.newest = [*text.identity, text.size] if query.newest is None else query.newest
            if query.oldest_first:
                end = min(text.size, self._first_size(query)) if query.after else text.size
                blocks = text.forwards(offset, before, end)
            else:
                if query.after is None:
                    line_ends = yield from self._count(text)
                    offset, before = text.size, line_ends + text.ends_open
                blocks = text.backwards(offset, before)
            for lines in blocks:
                yield from self._add(lines, query, page, text)
                if lines and query.plain and page.is_full and not query.oldest_first:
                    page.count(lines[-1].position[1])  # all remaining lines
                    return
                yield [*text.identity, *lines[-1].position] if lines else None

    def _start(self, query: LogQuery, text: _Text) -> tuple[int, int]:
        """Return offset and line count of the position. Raises StalePosition."""
        match query.after:
            case None:
                return 0, 0
            case [int(device), int(inode), int(offset), int(before)] if (device, inode) == text.identity:
                if 0 <= before <= offset <= text.size and self._first_size(query) >= 0:
                    return offset, before
        raise StalePosition

    def _first_size(self, query: LogQuery) -> int:
        """Return the size of the file at the time of the first page. Raises StalePosition."""
        match query.newest:
            case [int(), int(), int(size)]:
                return size
        raise StalePosition

    def _count(self, text: _Text) -> Generator[None, None, int]:
        """Count the line ends, continuing the last count. Another query may count at the same time."""
        file, counted, lines = self.counted
        if file != text.identity or counted > text.size:
            counted = lines = 0
        while counted < text.size and (block := text.read(counted, min(_COUNT_BLOCK, text.size - counted))):
            counted += len(block)
            lines += block.count(b"\n")
            self.counted = text.identity, counted, lines
            yield
        return lines

    def _add(self, lines: list[_Line], query: LogQuery, page: LogPage, text: _Text) -> Scan:
        if query.plain and not page.wants(len(lines)):
            page.count(len(lines))
            return
        for number, line in enumerate(lines):
            if number % _STEP == _STEP - 1:
                yield [*text.identity, *lines[number - 1].position]
            entry = self._entry(line, text)
            if (
                query.admits(entry.level, entry.source, entry.event_id)
                and query.within(entry.time)
                and query.in_message(entry.message)
            ):
                page.add(entry, [*text.identity, *line.position])

    def _entry(self, line: _Line, text: _Text) -> LogEntry:
        content = line.content.decode("utf-8", "replace").rstrip("\r")
        match = _LINE.match(content)
        if match is None:
            return LogEntry(line.number, self.name, "INFORMATION", self.name, 0, content, None, {})
        priority = match["priority"]
        level = logentry.SEVERITIES[int(priority) % 8] if priority else "INFORMATION"
        source, message = match["program"] or self.name, content[match.end() :]
        return LogEntry(line.number, self.name, level, source, 0, message, _time(match, text.modified), {})


def _time(match: re.Match[str], modified: datetime) -> int | None:
    """Return the time of a line. A timestamp without a year gets the latest year that does not postdate the file."""
    try:
        if match["iso"]:
            return logentry.microseconds(datetime.fromisoformat(match["iso"].replace(",", ".")))
        month, clock = _MONTHS.index(match["month"]) + 1, match["clock"]
        latest = modified + timedelta(days=1)
        for year in range(latest.year, latest.year - 9, -1):  # February 29 can be eight years apart
            if (month, int(match["day"])) == (2, 29) and not calendar.isleap(year):
                continue
            time = datetime.fromisoformat(f"{year}-{month:02}-{int(match['day']):02} {clock}")
            if time <= latest:
                return logentry.microseconds(time)
    except (ValueError, OverflowError, OSError):
        pass
    return None


class _Text(LogFile):
    """The lines of a file, up to its size when it was opened."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.identity = self.stat.st_dev, self.stat.st_ino
        self.modified = datetime.fromtimestamp(self.stat.st_mtime)

    @property
    def ends_open(self) -> bool:
        """Whether the last line has no line end yet."""
        return self.size > 0 and self.read(self.size - 1, 1) != b"\n"

    def forwards(self, offset: int, before: int, end: int) -> Iterator[list[_Line]]:
        """Yield the lines of each block from ``offset`` on; ``before`` is the number of lines before it."""
        begun = b""
        while offset < end and (block := self.read(offset, min(_BLOCK, end - offset))):
            lines = []
            *pieces, rest = block.split(b"\n")
            for piece in pieces:
                offset += len(piece) + 1
                before += 1
                lines.append(_Line((offset, before), before, (begun + piece)[:_MAX_LINE]))
                begun = b""
            offset += len(rest)
            begun = (begun + rest)[:_MAX_LINE]
            if begun and offset >= end:
                lines.append(_Line((offset, before + 1), before + 1, begun))
            yield lines

    def backwards(self, offset: int, before: int) -> Iterator[list[_Line]]:
        """Yield the ``before`` lines that end at ``offset`` or earlier, the last one first."""
        tail: bytes | None = None  # of a line whose start is not read yet; None: no line end was read
        while offset > 0:
            size = min(offset, _BLOCK)
            block = self.read(offset - size, size)
            if len(block) < size:  # the file was truncated
                return
            lines = []
            first, *pieces = block.split(b"\n")
            for piece in reversed(pieces):
                offset -= len(piece)
                if piece or tail is not None:
                    lines.append(_Line((offset, before - 1), before, (piece + (tail or b""))[:_MAX_LINE]))
                    before -= 1
                tail = b""
                offset -= 1
            offset -= len(first)
            if first or tail is not None:
                tail = (first + (tail or b""))[:_MAX_LINE]
            if offset == 0 and tail is not None:
                lines.append(_Line((0, before - 1), before, tail))
            yield lines
