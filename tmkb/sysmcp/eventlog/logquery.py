"""Queries, pages and the interface of logs, common to all kinds of logs.

The ``scan`` of a log is a generator that adds hits to a page, in the order of the query. It yields at least every few
milliseconds: the position from which another scan can continue, as JSON, or None if there is none yet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import NamedTuple, Protocol

from tmkb.schema.values import JsonObject, JsonValue
from tmkb.sysmcp import plainfile
from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logentry import LogEntry

Scan = Generator[JsonValue, None, None]
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Unreadable(Exception):
    """A log that cannot be read. ``cause`` is a key of the setting `reasons`, such as `missing` or `needs_evtx`."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class LogFile:
    """A regular log file, not a link, open for reading; the caller closes it. Raises Unreadable."""

    def __init__(self, path: str) -> None:
        try:
            self.fd = plainfile.open_plain(path)
        except PermissionError:
            raise Unreadable("denied") from None
        except OSError:
            raise Unreadable("missing") from None
        self.stat = os.fstat(self.fd)
        self.size = self.stat.st_size

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset`` on, fewer at the end of the file."""
        os.lseek(self.fd, offset, os.SEEK_SET)
        return os.read(self.fd, size)


class StalePosition(Exception):
    """A position that the log does not contain, or no longer contains."""


class LogState(NamedTuple):
    """The size of a log in bytes, and the times of its oldest and newest entries in microseconds; None if unknown."""

    size: int | None
    oldest: int | None
    newest: int | None


class Log(Protocol):
    """A log of any kind."""

    name: str
    kind: str

    def state(self) -> Generator[None, None, LogState]:
        """Return the current state, in steps. Raises Unreadable."""

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Add the hits to ``page``. Raises Unreadable, and StalePosition for ``query.after``."""


class ScanEnd(NamedTuple):
    """Where a scan stopped: whether at the end of the log, and the last position that it yielded."""

    is_complete: bool
    position: JsonValue


class LogQuery(NamedTuple):
    """Filters, which all must match; the order; and the range of the scan. Cursors contain a hash of its ``repr``.

    ``rank`` is the minimum level, ``source`` and ``text`` are casefolded, times are in microseconds, ``end`` is
    exclusive. ``after``: position of an earlier scan. ``newest``: the newest entry at the time of the first page.
    """

    oldest_first: bool = False
    rank: int = 0
    source: str | None = None
    event_ids: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None
    after: JsonValue = None
    newest: JsonValue = None

    @property
    def timed(self) -> bool:
        """Whether the query has a start or an end."""
        return self.start is not None or self.end is not None

    @property
    def plain(self) -> bool:
        """Whether the query has no filter."""
        return not (self.rank or self.timed) and (self.source, self.event_ids, self.text) == (None, None, None)

    def admits(self, level: str, source: str, event_id: int) -> bool:
        """Return whether an entry passes the filters on level, source and event id."""
        return (
            logentry.RANKS[level] >= self.rank
            and (self.source is None or source.casefold() == self.source)
            and (self.event_ids is None or event_id in self.event_ids)
        )

    def within(self, time: int | None) -> bool:
        """Return whether a time is between start and end. An entry without a time passes only an untimed query."""
        if not self.timed:
            return True
        return time is not None and (self.start is None or time >= self.start) and (self.end is None or time < self.end)

    def in_message(self, message: str) -> bool:
        """Return whether a message contains the text of the query."""
        return self.text is None or self.text in message.casefold()


class LogPage:
    """The entries after the first ``skip`` hits: at most ``limit`` entries and ``max_bytes`` bytes of JSON.

    The first entry is added even if it is larger, so that there is always a next page.
    """

    def __init__(self, skip: int, limit: int, max_bytes: int, event_text_bytes: int) -> None:
        self.skip = skip
        self.limit = limit
        self.room = max_bytes
        self.event_text_bytes = event_text_bytes
        self.entries: list[JsonObject] = []
        self.hits = 0  # before, on and after this page
        self.corrupt = 0  # unreadable entries
        self.is_cut = False  # because of its size
        self.position: JsonValue = None  # after the last entry
        self.newest: JsonValue = None  # see `LogQuery.newest`

    @property
    def is_full(self) -> bool:
        """Whether the page takes no more entries; further hits are counted."""
        return self.is_cut or len(self.entries) == self.limit

    @property
    def to_skip(self) -> int | None:
        """The number of hits to count before the next entry of the page; None if it is full."""
        return None if self.is_full else max(0, self.skip - self.hits)

    def wants(self, count: int = 1) -> bool:
        """Return whether one of the next ``count`` hits belongs to the page."""
        to_skip = self.to_skip
        return to_skip is not None and to_skip < count

    def count(self, hits: int) -> None:
        """Count hits that do not belong to the page."""
        self.hits += hits

    def add(self, entry: LogEntry, position: JsonValue) -> None:
        """Count a hit, and add it if it belongs to the page; ``position`` is the one after it."""
        is_wanted = self.wants()
        self.hits += 1
        if not is_wanted:
            return
        value = entry.value(self.event_text_bytes)
        self.room -= len(_encode(value)) + 1
        self.is_cut = self.room < 0 and bool(self.entries)
        if not self.is_cut:
            self.entries.append(value)
            self.position = position
