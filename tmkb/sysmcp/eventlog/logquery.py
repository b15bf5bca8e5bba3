"""What is asked of a log, and the page that answers it. All kinds of logs share these.

The ``scan`` of a log is a generator that hands hits to a page, in the order asked for. It yields where it may be
interrupted, at least every few milliseconds: the place from which another scan can go on (JSON), or None where there is
none yet.
"""

from __future__ import annotations

import json
from typing import NamedTuple, Protocol

from tmkb.sysmcp.eventlog import logentry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.sysmcp.eventlog.logentry import LogEntry

    Scan = Generator[JsonValue, None, None]

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


class Unreadable(Exception):
    """A log that cannot be read now. ``cause`` is a key of the setting `reasons`: `missing`, `needs_evtx`, …"""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class LogState(NamedTuple):
    """The size of a log in bytes, and the times of its oldest and newest entry in microseconds; None: not known."""

    size: int | None
    oldest: int | None
    newest: int | None


class Log(Protocol):
    """One log, of whatever kind."""

    name: str
    kind: str

    def state(self) -> Generator[None, None, LogState]:
        """How it is now; yields as ``scan`` does, but nothing. Raises `Unreadable`."""

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Hand the hits to ``page``. Raises `Unreadable`, and `StalePlace` where ``query.after`` is no place."""


class StalePlace(Exception):
    """A place to go on from that is not in the log, or no longer."""


class Reached(NamedTuple):
    """How far a scan came: whether to the end of the log, and the last place that it told."""

    end: bool
    place: JsonValue


class LogQuery(NamedTuple):
    """Filters, all of which an entry has to pass; the order; and where to begin and end.

    ``rank`` is the least level, ``source`` and ``text`` are casefolded, times are microseconds, ``end`` is excluded.
    ``after`` is a place of an earlier scan; ``newest`` the newest entry that there was then.
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
        """Whether times matter."""
        return self.start is not None or self.end is not None

    @property
    def plain(self) -> bool:
        """Whether every entry is a hit."""
        return not (self.rank or self.timed) and (self.source, self.event_ids, self.text) == (None, None, None)

    def admits(self, level: str, source: str, event_id: int) -> bool:
        """Whether an entry passes all filters but those of time and text."""
        return (
            logentry.RANKS[level] >= self.rank
            and (self.source is None or source.casefold() == self.source)
            and (self.event_ids is None or event_id in self.event_ids)
        )

    def within(self, time: int | None) -> bool:
        """Whether an entry of that time passes; one without a time passes where times do not matter."""
        if not self.timed:
            return True
        return time is not None and (self.start is None or time >= self.start) and (self.end is None or time < self.end)

    def in_message(self, message: str) -> bool:
        """Whether a message holds the text."""
        return self.text is None or self.text in message.casefold()


class LogPage:
    """The entries from the hit ``skip`` on: at most ``limit``, and together at most ``most_bytes`` as JSON.

    The first entry is taken however long it is, so that there is always a next page.
    """

    def __init__(self, skip: int, limit: int, most_bytes: int, message_bytes: int) -> None:
        self.skip = skip
        self.limit = limit
        self.room = most_bytes
        self.message_bytes = message_bytes
        self.entries: list[JsonObject] = []
        self.hits = 0  # that have been met, on this page or before or after it
        self.corrupt = 0  # entries that could not be read
        self.cut = False  # for its size
        self.place: JsonValue = None  # right behind the last entry
        self.newest: JsonValue = None  # the newest entry that there was when the scan began

    @property
    def full(self) -> bool:
        """Whether no further entry is wanted."""
        return self.cut or len(self.entries) == self.limit

    @property
    def unwanted(self) -> int | None:
        """How many of the next hits are not wanted; None where all are not."""
        return None if self.full else max(0, self.skip - self.hits)

    def wants(self, count: int = 1) -> bool:
        """Whether any of the next ``count`` hits is wanted."""
        unwanted = self.unwanted
        return unwanted is not None and unwanted < count

    def passed(self, count: int) -> None:
        """So many hits, none of them wanted."""
        self.hits += count

    def take(self, entry: LogEntry, place: JsonValue) -> None:
        """A hit that is wanted, and the place behind it; where there is no room for it, it only counts."""
        self.hits += 1
        if self.full:
            return
        value = entry.value(self.message_bytes)
        self.room -= len(_ENCODE(value)) + 1
        self.cut = self.room < 0 and bool(self.entries)
        if not self.cut:
            self.entries.append(value)
            self.place = place
