"""A folder of .evtx files, on any operating system; each file is one log.

The fields to filter by are kept in columns, one set per chunk that was read. So filtered totals become exact with time,
and only changed chunks are read again. Until a chunk is read, it counts as complete between the times of its first and
last records.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from array import array
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from itertools import islice

from tmkb.sysmcp.eventlog import chunks, event
from tmkb.sysmcp.eventlog.chunks import Chunk, Record
from tmkb.sysmcp.eventlog.event import Kind
from tmkb.sysmcp.eventlog.logquery import Log, LogFile, LogPage, LogQuery, LogState, Scan, StalePosition, Unreadable

_SUFFIX = ".evtx"
_SLASH = "%4"  # stands in a file name for the slash of a log's name
_SETTLED = 100_000_000  # nanoseconds after which another change alters the modification time
_NOT_LITERAL = re.compile("[=;&<>\"'\t\r\n\N{REPLACEMENT CHARACTER}]")  # escaped in XML, or added to a message
_STEP = 50  # records between two yields
_LAST_ID = 2**64 - 1


class Columns:
    """Ids, times and kinds (as numbers) of the records of one chunk, and the number of unreadable records."""

    def __init__(self, records: Sequence[Record], kinds: Sequence[int], bad: int) -> None:
        self.ids = array("Q", (record.id for record in records))
        self.times = array("q", (record.time for record in records))
        self.kinds = array("I", kinds)
        self.counts = Counter(kinds)
        self.oldest = min(self.times, default=0)
        self.newest = max(self.times, default=0)
        self.bad = bad


class Folder:
    """The logs of a folder, or those named in ``only``. Columns are kept for at most ``max_records`` records."""

    def __init__(self, path: str, only: Collection[str] | None, max_records: int) -> None:
        self.path = path
        self.only = only
        self.room = max_records
        self.files: dict[str, File] = {}

    def logs(self) -> list[Log]:
        """Return the current logs by name. For an unreadable folder, return those in ``only``, or one called `*`."""
        try:
            with os.scandir(self.path) as entries:
                names = sorted(entry.name for entry in entries if entry.name.lower().endswith(_SUFFIX))
        except OSError:
            names = [name.replace("/", _SLASH) + _SUFFIX for name in (["*"] if self.only is None else self.only)]
        known = self.files
        self.files = {name: known.get(name) or File(self, name) for name in names}
        for name in known.keys() - self.files.keys():
            known[name].drop_columns(known[name].columns)
        return [file for file in self.files.values() if self.only is None or file.name in self.only]


class File:
    """One log. Its list of chunks and its columns are kept between queries."""

    kind = "evtx"

    def __init__(self, folder: Folder, file: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder.path, file)
        self.name = os.fsencode(file[: -len(_SUFFIX)]).decode("utf-8", "replace").replace(_SLASH, "/")
        self.identity: object = None
        self.chunks: list[Chunk] = []
        self.bad = 0
        self.columns: dict[Chunk, Columns] = {}
        self.kinds: dict[Kind, int] = {}

    def state(self) -> Generator[None, None, LogState]:
        """Return the current state, in steps. Raises Unreadable."""
        with closing(_open(self.path)) as file:
            yield from self._index(file)
        listed = self.chunks
        return LogState(file.size, listed[0].oldest if listed else None, listed[-1].newest if listed else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Examine chunk by chunk. A position is the id of the record before it."""
        with closing(_open(self.path)) as file:
            yield from self._index(file)
            page.corrupt += self.bad
            newest = self.chunks[-1].last if self.chunks else 0
            page.newest = newest if query.newest is None else query.newest
            scan = _Scan(self, file, query, page)
            for chunk in self.chunks if query.oldest_first else reversed(self.chunks):
                if scan.concerns(chunk):
                    yield from scan.examine(chunk)
                    yield chunk.last if query.oldest_first else chunk.first

    def _index(self, file: LogFile) -> Generator[None, None, None]:
        status = file.stat
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if identity == self.identity:
            return
        current, bad = yield from chunks.index(file)
        self.drop_columns(self.columns.keys() - set(current))
        self.chunks, self.bad = current, bad
        is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED
        self.identity = identity if is_settled else None

    def drop_columns(self, obsolete: Collection[Chunk]) -> None:
        """Drop the columns of these chunks."""
        for chunk in [*obsolete]:
            self.folder.room += len(self.columns.pop(chunk).ids)

    def read(self, file: LogFile, chunk: Chunk) -> tuple[Columns, list[Record]]:
        """Read a chunk; return its columns and its records in order."""
        all_records, bad = chunks.records(file, chunk)
        kinds, records = [], []
        for record in sorted(all_records):
            try:
                kind = event.kind(record.xml)
            except ValueError:
                bad += 1
                continue
            kinds.append(self.kinds.setdefault(kind, len(self.kinds)))
            records.append(record)
        columns = Columns(records, kinds, bad)
        if chunk not in self.columns and self.folder.room >= len(records):
            self.folder.room -= len(records)
            self.columns[chunk] = columns
        return columns, records


class _Scan:
    """The scan of a file for one query. Raises StalePosition."""

    def __init__(self, log: File, file: LogFile, query: LogQuery, page: LogPage) -> None:
        self.log = log
        self.file = file
        self.query = query
        self.page = page
        self.first, self.last = _range(query, page.newest)  # ids of records, inclusive
        self.admitted: list[bool] = []  # by number of the kind
        self.by_kind = not query._replace(start=None, end=None, text=None).plain

    def concerns(self, chunk: Chunk) -> bool:
        """Return whether a chunk can contain hits."""
        if chunk.last < self.first or chunk.first > self.last:
            return False
        known = self.log.columns.get(chunk)
        oldest, newest = (known.oldest, known.newest) if known else (chunk.oldest, chunk.newest)
        if newest < oldest:
            return True
        return not (
            (self.query.start is not None and newest < self.query.start)
            or (self.query.end is not None and oldest >= self.query.end)
        )

    def examine(self, chunk: Chunk) -> Scan:
        """Add the hits of a chunk to the page; read the chunk only if its columns are not sufficient."""
        known = self.log.columns.get(chunk)
        count = self._count(chunk, known)
        if count is not None and not self.page.wants(count):
            self.page.count(count)
            self.page.corrupt += known.bad if known else 0
            return
        if known and not self._rows(known):
            self.page.corrupt += known.bad
            return
        columns, records = self.log.read(self.file, chunk)
        self.page.corrupt += columns.bad
        yield from self._add([records[row] for row in self._rows(columns)])

    def _count(self, chunk: Chunk, known: Columns | None) -> int | None:
        """Return the number of hits in a chunk; None if the chunk must be read to know it."""
        if self.query.text is not None or chunk.first < self.first or chunk.last > self.last:
            return None
        if known is None:
            return chunk.size if self.query.plain else None
        if self.query.timed:
            return len(self._rows(known))
        return sum(count for kind, count in known.counts.items() if self._admits(kind))

    def _rows(self, columns: Columns) -> list[int]:
        """Return the rows that pass the filters except text, in the order of the query."""
        ids, times, kinds, within = columns.ids, columns.times, columns.kinds, self.query.within
        numbers = range(len(ids)) if self.query.oldest_first else reversed(range(len(ids)))
        return [
            row
            for row in numbers
            if self.first <= ids[row] <= self.last
            and (not self.by_kind or self._admits(kinds[row]))
            and (not self.query.timed or within(times[row]))
        ]

    def _admits(self, number: int) -> bool:
        if number >= len(self.admitted):  # new kinds have the highest numbers
            new = islice(self.log.kinds, len(self.admitted), None)
            self.admitted += [self.query.admits(*kind) for kind in new]
        return self.admitted[number]

    def _add(self, records: list[Record]) -> Scan:
        literal = _literal(self.query.text)
        if literal is not None:
            records = [record for record in records if literal in record.xml.casefold()]
        for number, record in enumerate(records, 1):
            if self.query.text is None and not self.page.wants():
                self.page.count(1)
            else:
                entry = event.read(record.xml, self.log.name)
                if self.query.in_message(entry.message):
                    self.page.add(entry._replace(id=record.id, time=record.time), record.id)
            if number % _STEP == 0:
                yield record.id


def _range(query: LogQuery, newest: object) -> tuple[int, int]:
    """Return the first and last record ids of a scan. Raises StalePosition."""
    if query.after is None:
        return 0, _LAST_ID  # the header of an open chunk may not include its last records
    if not isinstance(query.after, int) or not isinstance(newest, int) or query.after > newest:
        raise StalePosition
    return (query.after + 1, newest) if query.oldest_first else (0, query.after - 1)


def _literal(text: str | None) -> str | None:
    """Return the longest part of ``text`` that XML contains literally if the message contains ``text``."""
    return None if text is None else max((part.strip() for part in _NOT_LITERAL.split(text)), key=len)


def _open(path: str) -> LogFile:
    """Open a log. Raises Unreadable, also if the library evtx is missing."""
    if importlib.util.find_spec("evtx") is None:
        raise Unreadable("needs_evtx")
    return LogFile(path)
