"""The systemd journal as one or several logs; each contains the entries of some syslog facilities.

The library filters by level and source where it can, so this module need not examine those entries.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from tmkb.schema.values import JsonValue
from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.libsystemd import Handle
from tmkb.sysmcp.eventlog.logentry import LogEntry
from tmkb.sysmcp.eventlog.logquery import Log, LogPage, LogQuery, LogState, Scan, StalePosition, Unreadable

_SUFFIXES = (".journal", ".journal~")
_SOURCES = ("SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT", "_COMM")  # the first of these fields is the source
_PRIORITIES = [*"01234567"]
_STEP = 200  # entries to examine between two yields
_LEAP = 20_000  # entries to count between two yields


class Journal:
    """The journal at ``path``, a folder or a file. ``logs``: log name → its facilities, as ``only`` or ``except``."""

    def __init__(self, path: str, logs: Mapping[str, Mapping[str, Any]]) -> None:
        self.configured: list[Log] = [
            JournalLog(path, name, facilities.get("only"), facilities.get("except", ()))
            for name, facilities in logs.items()
        ]

    def logs(self) -> list[Log]:
        """Return all configured logs, even without a journal."""
        return self.configured


def _journals(folder: str, recurse: bool) -> Iterator[str]:
    """Yield the journal files of a folder, and of its subfolders if ``recurse``. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if recurse and entry.is_dir():
                yield from _journals(entry.path, recurse=False)
            elif entry.name.endswith(_SUFFIXES):
                yield entry.path


class _Sequence(NamedTuple):
    """The sequence id of an entry's file, and the entry's number in the sequence."""

    id: str
    number: int

    @classmethod
    def of(cls, cursor: str) -> _Sequence:
        """Parse a cursor of the journal. Raises StalePosition."""
        parts = dict(part.partition("=")[::2] for part in cursor.split(";"))
        try:
            return cls(parts["s"], int(parts["i"], 16))
        except (KeyError, ValueError):
            raise StalePosition from None


class JournalLog:
    """The entries of the facilities ``only``, or of all facilities but ``excluded``."""

    kind = "journal"

    def __init__(self, path: str, name: str, only: Sequence[int] | None, excluded: Sequence[int]) -> None:
        self.path = path
        self.name = name
        self.only = only
        self.excluded = {str(facility) for facility in excluded}

    def state(self) -> Generator[None, None, LogState]:
        """Return the current state, in steps. Raises Unreadable."""
        size = sum(os.path.getsize(file) for file in self._files())
        with closing(Handle(self.path)) as handle:
            self._restrict(handle, LogQuery())
            times = []
            for oldest in (True, False):
                handle.seek_edge(not oldest)
                times += [handle.time()] if handle.skip(1, oldest) else []
                yield
        return LogState(size, times[0] if times else None, times[-1] if times else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Examine or count entries. A position is the cursor of the entry before it."""
        self._files()
        with closing(Handle(self.path)) as handle:
            page.newest = query.newest if query.after is not None else self._newest(handle)
            if query.event_ids is not None and 0 not in query.event_ids:
                return
            is_exact = self._restrict(handle, query) and not query.timed and not (query.oldest_first and query.newest)
            self._seek(handle, query)
            more = True
            while more:
                to_skip = page.to_skip
                if is_exact and to_skip != 0:
                    leap = min(_LEAP, to_skip or _LEAP)
                    moved = handle.skip(leap, query.oldest_first)
                    page.count(moved)
                    more = moved == leap
                else:
                    more = all(self._examine_next(handle, query, page) for _ in range(_STEP))
                yield handle.cursor() if more else None

    def _files(self) -> list[str]:
        """Return the readable journal files. Raises Unreadable if there are none."""
        try:
            files = [self.path] if os.path.isfile(self.path) else [*_journals(self.path, recurse=True)]
        except PermissionError:
            raise Unreadable("denied") from None
        except OSError:
            raise Unreadable("missing") from None
        if not files:
            raise Unreadable("missing")
        readable = [file for file in files if os.access(file, os.R_OK)]
        if not readable:
            raise Unreadable("denied")
        return readable

    def _newest(self, handle: Handle) -> JsonValue:
        handle.seek_edge(True)
        return [*_Sequence.of(handle.cursor())] if handle.skip(1, False) else None

    def _restrict(self, handle: Handle, query: LogQuery) -> bool:
        """Let the library filter as far as it can; return whether its result is exact."""
        is_exact = query.text is None and not self.excluded
        if self.only is not None:
            handle.match("SYSLOG_FACILITY", [str(facility) for facility in self.only])
            handle.conjunction()
        if query.rank > logentry.RANKS["INFORMATION"]:
            severities = [str(n) for n, level in enumerate(logentry.SEVERITIES) if logentry.RANKS[level] >= query.rank]
            handle.match("PRIORITY", severities)
            handle.conjunction()
        elif query.rank:  # includes entries without a priority, which the library cannot match
            is_exact = False
        if query.source is not None:
            is_exact = False  # an entry with another source can have this unit
            for field in _SOURCES:
                spellings = [value for value in handle.values(field) if value.casefold() == query.source]
                handle.match(field, spellings or [query.source])
                handle.disjunction()
        return is_exact

    def _seek(self, handle: Handle, query: LogQuery) -> None:
        """Go before the first entry of the query. Raises StalePosition."""
        forward = query.oldest_first
        bound = query.start if forward else query.end
        if query.after is not None:
            cursor = str(query.after)
            try:
                handle.seek_cursor(cursor)
            except ValueError:
                raise StalePosition from None
            handle.skip(1, forward)
            if not handle.is_at(cursor) and not handle.skip(1, not forward):  # the entry was deleted
                handle.seek_edge(not forward)
        elif bound is not None:
            handle.seek_time(bound)
        else:
            handle.seek_edge(not forward)

    def _examine_next(self, handle: Handle, query: LogQuery, page: LogPage) -> bool:
        """Add the next entry if it is a hit; return False at the end of the query's range."""
        if not handle.skip(1, query.oldest_first):
            return False
        time = handle.time()
        if query.oldest_first:
            if (query.end is not None and time >= query.end) or self._is_newer(handle, query.newest):
                return False
        elif query.start is not None and time < query.start:
            return False
        entry = self._entry(handle, query, time) if query.within(time) else None
        if entry is not None and page.wants():
            cursor = handle.cursor()
            page.add(entry._replace(id=_Sequence.of(cursor).number), cursor)
        elif entry is not None:
            page.count(1)
        return True

    def _is_newer(self, handle: Handle, newest: JsonValue) -> bool:
        """Return whether the current entry comes after ``newest`` in the same sequence."""
        match newest:
            case [str(id_), int(number)]:
                current = _Sequence.of(handle.cursor())
                return current.id == id_ and current.number > number
        return False

    def _entry(self, handle: Handle, query: LogQuery, time: int) -> LogEntry | None:
        """Return the current entry without its id, if it passes the filters except time."""
        if self.excluded and handle.field(b"SYSLOG_FACILITY") in self.excluded:
            return None
        priority = handle.field(b"PRIORITY") or ""
        level = logentry.SEVERITIES[int(priority)] if priority in _PRIORITIES else "INFORMATION"
        source = next((value for field in _SOURCES if (value := handle.field(field.encode()))), "")
        if not query.admits(level, source, 0):
            return None
        message = handle.field(b"MESSAGE") or ""
        if not query.in_message(message):
            return None
        message_id = handle.field(b"MESSAGE_ID")
        return LogEntry(0, self.name, level, source, 0, message, time, {"messageId": message_id} if message_id else {})
