"""A folder of .evtx files: one log each, on whatever system.

What records are filtered by is kept in columns, chunk by chunk as chunks are read, so that a filtered total gets exact
with time, and only chunks that have changed are read again. Between the times of its first and last record a chunk is
taken to have all its records, until it has been read.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from array import array
from collections import Counter
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from tmkb.sysmcp.eventlog import chunks, event
from tmkb.sysmcp.eventlog.logfile import LogFile
from tmkb.sysmcp.eventlog.logquery import LogQuery, LogState, StalePlace, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence

    from tmkb.sysmcp.eventlog.chunks import Chunk, Record
    from tmkb.sysmcp.eventlog.event import Kind
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, Scan

_SUFFIX = ".evtx"
_SLASH = "%4"  # how Windows writes the slash of a log's name in that of its file
_TICK = 100_000_000  # nanoseconds; clocks of file systems have longer ones than that of the machine
_MADE = re.compile("[=;&<>\"'\t\r\n\N{REPLACEMENT CHARACTER}]")  # what XML escapes, or a message adds to what is there
_STEP = 50  # records that are read before anybody else has a turn
_LAST_ID = 2**64 - 1


class Columns:
    """Ids, times and kinds (as numbers) of the records of one chunk, and how many could not be read."""

    __slots__ = ("bad", "counts", "ids", "kinds", "newest", "oldest", "times")

    def __init__(self, records: Sequence[Record], kinds: Sequence[int], bad: int) -> None:
        self.ids = array("Q", (record.id for record in records))
        self.times = array("q", (record.time for record in records))
        self.kinds = array("I", kinds)
        self.counts = Counter(kinds)
        self.oldest = min(self.times, default=0)
        self.newest = max(self.times, default=0)
        self.bad = bad


class Folder:
    """The logs of a folder; ``only`` the named ones, if any are named. At most ``kept`` records have columns."""

    def __init__(self, path: str, only: Collection[str] | None, kept: int) -> None:
        self.path = path
        self.only = only
        self.room = kept
        self.files: dict[str, File] = {}

    def logs(self) -> list[Log]:
        """Those that there are now, by name; where the folder cannot be read, the named ones, or one called `*`."""
        try:
            with os.scandir(self.path) as entries:
                names = sorted(entry.name for entry in entries if entry.name.lower().endswith(_SUFFIX))
        except OSError:
            names = [name.replace("/", _SLASH) + _SUFFIX for name in (["*"] if self.only is None else self.only)]
        known = self.files
        self.files = {name: known.get(name) or File(self, name) for name in names}
        for name in known.keys() - self.files.keys():
            known[name].forget(known[name].columns)
        return [file for file in self.files.values() if self.only is None or file.name in self.only]


class _Bounds(NamedTuple):
    """The ids that a scan is about, both included."""

    first: int
    last: int


class File:
    """One log. Its chunks and columns are kept from one query to the next."""

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
        """Raises `Unreadable`."""
        with closing(_opened(self.path)) as file:
            yield from self._index(file)
        whole = self.chunks
        return LogState(file.size, whole[0].oldest if whole else None, whole[-1].newest if whole else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Chunk by chunk. A place is the id of a record: what comes behind it is next."""
        with closing(_opened(self.path)) as file:
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
        found = file.stat
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if identity == self.identity:
            return
        read, bad = yield from chunks.index(file)
        self.forget(self.columns.keys() - set(read))
        self.chunks, self.bad = read, bad
        settled = time.time_ns() - found.st_mtime_ns > _TICK  # else it may change without a later time
        self.identity = identity if settled else None

    def forget(self, gone: Collection[Chunk]) -> None:
        """Keep the columns of these chunks no longer."""
        for chunk in [*gone]:
            self.folder.room += len(self.columns.pop(chunk).ids)

    def read(self, file: LogFile, chunk: Chunk) -> tuple[Columns, list[Record]]:
        """The columns of a chunk and its records, in order."""
        found, bad = chunks.records(file, chunk)
        kinds, records = [], []
        for record in sorted(found):
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
    """One query's way through the chunks of a file."""

    def __init__(self, log: File, file: LogFile, query: LogQuery, page: LogPage) -> None:
        self.log = log
        self.file = file
        self.query = query
        self.page = page
        self.bounds = _bounds(query, page.newest)
        self.admitted: list[bool] = []
        self.by_kind = not query._replace(start=None, end=None, text=None).plain

    def concerns(self, chunk: Chunk) -> bool:
        """Whether there can be hits in a chunk."""
        first, last = self.bounds
        if chunk.last < first or chunk.first > last:
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
        """Tell the page of the hits in a chunk. It is not read if what is known of it is enough."""
        known = self.log.columns.get(chunk)
        count = self._count(chunk, known)
        if count is not None and not self.page.wants(count):
            self.page.passed(count)
            self.page.corrupt += known.bad if known else 0
            return
        if known and not self._rows(known):
            self.page.corrupt += known.bad
            return
        columns, records = self.log.read(self.file, chunk)
        self.page.corrupt += columns.bad
        yield from self._tell([records[row] for row in self._rows(columns)])

    def _count(self, chunk: Chunk, known: Columns | None) -> int | None:
        """How many hits there are in a chunk, if that can be said without reading it."""
        inside = self.bounds.first <= chunk.first and chunk.last <= self.bounds.last
        if self.query.text is not None or not inside:
            return None
        if known is None:
            return chunk.size if self.query.plain else None
        if self.query.timed:
            return len(self._rows(known))
        return sum(count for kind, count in known.counts.items() if self._admits(kind))

    def _rows(self, columns: Columns) -> list[int]:
        """Which records pass, the text aside, in the order asked for."""
        first, last = self.bounds
        ids, times, kinds, within = columns.ids, columns.times, columns.kinds, self.query.within
        numbers = range(len(ids)) if self.query.oldest_first else reversed(range(len(ids)))
        return [
            row
            for row in numbers
            if first <= ids[row] <= last
            and (not self.by_kind or self._admits(kinds[row]))
            and (not self.query.timed or within(times[row]))
        ]

    def _admits(self, number: int) -> bool:
        if number >= len(self.admitted):  # kinds are numbered as they are met
            further = islice(self.log.kinds, len(self.admitted), None)
            self.admitted += [self.query.admits(*kind) for kind in further]
        return self.admitted[number]

    def _tell(self, records: list[Record]) -> Scan:
        needle = _needle(self.query.text)
        if needle is not None:
            records = [record for record in records if needle in record.xml.casefold()]
        for number, record in enumerate(records, 1):
            self._tell_of(record)
            if number % _STEP == 0:
                yield record.id

    def _tell_of(self, record: Record) -> None:
        if self.query.text is None and not self.page.wants():
            self.page.passed(1)
            return
        entry = event.read(record.xml, self.log.name)
        if not self.query.in_message(entry.message):
            return
        if self.page.wants():
            self.page.take(entry._replace(id=record.id, time=record.time), record.id)
        else:
            self.page.passed(1)


def _bounds(query: LogQuery, newest: object) -> _Bounds:
    """Raises `StalePlace`."""
    if query.after is None:
        return _Bounds(0, _LAST_ID)  # the header of the chunk that is being written may not know its last records yet
    if not isinstance(query.after, int) or not isinstance(newest, int) or query.after > newest:
        raise StalePlace
    return _Bounds(query.after + 1, newest) if query.oldest_first else _Bounds(0, query.after - 1)


def _needle(text: str | None) -> str | None:
    """What XML has to hold for its message to hold the text: the longest part that a message has as it stands there."""
    return None if text is None else max((part.strip() for part in _MADE.split(text)), key=len)


def _opened(path: str) -> LogFile:
    """Raises `Unreadable`, also where the library is missing that reads it."""
    if importlib.util.find_spec("evtx") is None:
        raise Unreadable("needs_evtx")
    return LogFile(path)
