"""The journal of systemd, as one log or several: each has the entries of some syslog facilities.

Level and source are left to the library where it can tell them, so entries that do not match are never looked at.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import NamedTuple

from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.libsystemd import Handle
from tmkb.sysmcp.eventlog.logentry import LogEntry
from tmkb.sysmcp.eventlog.logquery import LogQuery, LogState, StalePlace, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from typing import Any

    from tmkb.schema.values import JsonValue
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, Scan

_SUFFIXES = (".journal", ".journal~")
_SOURCES = ("SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT", "_COMM")  # the first that an entry has is its source
_PRIORITIES = [*"01234567"]
_STEP = 200  # entries that are looked at, or
_LEAP = 20_000  # that are only counted, before anybody else has a turn


class Journal:
    """The logs of the journal at ``path``: a folder, or one file. ``logs``: by name, which facilities each has."""

    def __init__(self, path: str, logs: Mapping[str, Mapping[str, Any]]) -> None:
        self.named: list[Log] = [
            JournalLog(path, name, facilities.get("only"), facilities.get("except", ()))
            for name, facilities in logs.items()
        ]

    def logs(self) -> list[Log]:
        """All that are named, whether there is a journal or not."""
        return self.named


def _journals(folder: str, inside: bool) -> Iterator[str]:
    """The journal files of a folder and, if ``inside``, of those in it. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if inside and entry.is_dir():
                yield from _journals(entry.path, inside=False)
            elif entry.name.endswith(_SUFFIXES):
                yield entry.path


class _Place(NamedTuple):
    """An entry: the number of its file's sequence, and its number there."""

    sequence: str
    number: int

    @classmethod
    def of(cls, cursor: str) -> _Place:
        """Raises `StalePlace`."""
        parts = dict(part.partition("=")[::2] for part in cursor.split(";"))
        try:
            return cls(parts["s"], int(parts["i"], 16))
        except (KeyError, ValueError):
            raise StalePlace from None


class JournalLog:
    """The entries of ``only`` these facilities, or of all, ``but`` those."""

    kind = "journal"

    def __init__(self, path: str, name: str, only: Sequence[int] | None, but: Sequence[int]) -> None:
        self.path = path
        self.name = name
        self.only = only
        self.but = {str(facility) for facility in but}

    def state(self) -> Generator[None, None, LogState]:
        """Raises `Unreadable`."""
        size = sum(os.path.getsize(file) for file in self._files())
        with closing(Handle(self.path)) as handle:
            self._restrict(handle, LogQuery())
            times = []
            for oldest in (True, False):
                handle.to_end(not oldest)
                times += [handle.time()] if handle.skip(1, oldest) else []
                yield
        return LogState(size, times[0] if times else None, times[-1] if times else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Entry by entry, or only counting. A place is the cursor of an entry: what comes behind it is next."""
        self._files()
        with closing(Handle(self.path)) as handle:
            page.newest = query.newest if query.after is not None else self._newest(handle)
            if query.event_ids is not None and 0 not in query.event_ids:
                return
            exact = self._restrict(handle, query) and not query.timed and not (query.oldest_first and query.newest)
            self._begin(handle, query)
            more = True
            while more:
                unwanted = page.unwanted
                if exact and unwanted != 0:
                    leap = min(_LEAP, unwanted or _LEAP)
                    moved = handle.skip(leap, query.oldest_first)
                    page.passed(moved)
                    more = moved == leap
                else:
                    more = all(self._look(handle, query, page) for _ in range(_STEP))
                yield handle.cursor() if more else None

    def _files(self) -> list[str]:
        """Those with entries. Raises `Unreadable` where there are none, or none that may be read."""
        try:
            found = [self.path] if os.path.isfile(self.path) else [*_journals(self.path, inside=True)]
        except PermissionError:
            raise Unreadable("denied") from None
        except OSError:
            raise Unreadable("missing") from None
        if not found:
            raise Unreadable("missing")
        readable = [file for file in found if os.access(file, os.R_OK)]
        if not readable:
            raise Unreadable("denied")
        return readable

    def _newest(self, handle: Handle) -> JsonValue:
        handle.to_end(True)
        return [*_Place.of(handle.cursor())] if handle.skip(1, False) else None

    def _restrict(self, handle: Handle, query: LogQuery) -> bool:
        """Have the library leave out what does not match, as far as it can; whether that is all that does not."""
        exact = query.text is None and not self.but
        if self.only is not None:
            handle.match("SYSLOG_FACILITY", [str(facility) for facility in self.only])
            handle.both()
        if query.rank > logentry.RANKS["INFORMATION"]:
            severities = [str(n) for n, level in enumerate(logentry.SEVERITIES) if logentry.RANKS[level] >= query.rank]
            handle.match("PRIORITY", severities)
            handle.both()
        elif query.rank:  # an entry without a priority is one of these, and absence cannot be matched
            exact = False
        if query.source is not None:
            exact = False  # an entry may have one source and another unit
            for field in _SOURCES:
                alike = [value for value in handle.values(field) if value.casefold() == query.source]
                handle.match(field, alike or [query.source])
                handle.either()
        return exact

    def _begin(self, handle: Handle, query: LogQuery) -> None:
        """Go right before the first entry that is asked for. Raises `StalePlace`."""
        forward = query.oldest_first
        bound = query.start if forward else query.end
        if query.after is not None:
            try:
                handle.to_cursor(str(query.after))
            except ValueError:
                raise StalePlace from None
            handle.skip(1, forward)
            if not handle.is_at(str(query.after)) and not handle.skip(1, not forward):  # it is no longer there
                handle.to_end(not forward)
        elif bound is not None:
            handle.to_time(bound)
        else:
            handle.to_end(not forward)

    def _look(self, handle: Handle, query: LogQuery, page: LogPage) -> bool:
        """Go to the next entry and tell the page of it; whether there was one, and there can be more."""
        if not handle.skip(1, query.oldest_first):
            return False
        time = handle.time()
        if query.oldest_first:
            if (query.end is not None and time >= query.end) or self._is_younger(handle, query.newest):
                return False
        elif query.start is not None and time < query.start:
            return False
        entry = self._entry(handle, query, time) if query.within(time) else None
        if entry is not None:
            self._tell(handle, entry, page)
        return True

    def _is_younger(self, handle: Handle, newest: JsonValue) -> bool:
        """Whether this entry was written after the newest there was, as far as they are of one sequence."""
        match newest:
            case [str(sequence), int(number)]:
                place = _Place.of(handle.cursor())
                return place.sequence == sequence and place.number > number
        return False

    def _tell(self, handle: Handle, entry: LogEntry, page: LogPage) -> None:
        if not page.wants():
            page.passed(1)
            return
        cursor = handle.cursor()
        page.take(entry._replace(id=_Place.of(cursor).number), cursor)

    def _entry(self, handle: Handle, query: LogQuery, time: int) -> LogEntry | None:
        """The entry where the handle is, if it passes all filters but that of time."""
        if self.but and handle.field(b"SYSLOG_FACILITY") in self.but:
            return None
        priority = handle.field(b"PRIORITY") or ""
        level = logentry.SEVERITIES[int(priority)] if priority in _PRIORITIES else "INFORMATION"
        source = next((value for field in _SOURCES if (value := handle.field(field.encode()))), "")
        if not query.admits(level, source, 0):
            return None
        message = handle.field(b"MESSAGE") or ""
        if not query.in_message(message):
            return None
        name = handle.field(b"MESSAGE_ID")
        return LogEntry(0, self.name, level, source, 0, message, time, {"messageId": name} if name else {})
