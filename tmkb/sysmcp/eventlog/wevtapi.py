"""Read the event logs of a running Windows with pywin32; `event.py` parses the events.

Windows filters times, levels and positions through an XPath. This module filters sources, which Windows would compare
with case, and large numbers of event ids, which Windows refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from tmkb.sysmcp.eventlog import event, logentry
from tmkb.sysmcp.eventlog.logentry import LogEntry
from tmkb.sysmcp.eventlog.logquery import Log, LogPage, LogQuery, LogState, Scan, StalePosition, Unreadable

_BATCH = 64
_MAX_IDS = 10  # in an XPath; Windows refuses more than about twenty terms
_LEVELS = {"WARNING": "Level>=1 and Level<=3", "ERROR": "Level>=1 and Level<=2", "CRITICAL": "Level=1"}
_DENIED = 5  # ERROR_ACCESS_DENIED


class Channels:
    """The channels of this machine, or those named in ``only``."""

    def __init__(self, only: Collection[str] | None) -> None:
        self.only = only

    def logs(self) -> list[Log]:
        """Return the channels by name. Without the library, return those in ``only``, or one called `*`."""
        try:
            names: Collection[str] = sorted(_channels(_library()))
        except Unreadable:
            names = ["*"] if self.only is None else self.only
        return [Channel(name) for name in names if self.only is None or name in self.only]


class Channel:
    """One channel."""

    kind = "wevtapi"

    def __init__(self, name: str) -> None:
        self.name = name

    def state(self) -> Generator[None, None, LogState]:
        """Return the current state, in steps. Raises Unreadable."""
        library = _library()
        with _windows_errors():
            log = library.EvtOpenLog(self.name, library.EvtOpenChannelPath)
            size = int(library.EvtGetLogInfo(log, library.EvtLogFileSize)[0])
            oldest = self._edge(library, True)
            yield
            newest = self._edge(library, False)
        return LogState(size, oldest.time if oldest else None, newest.time if newest else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Examine batch by batch. A position is the id of the record before it."""
        library = _library()
        is_exact = query._replace(rank=0, start=None, end=None).plain  # Windows applies all filters
        with _windows_errors():
            newest = self._edge(library, False)
            page.newest = (newest.id if newest else 0) if query.newest is None else query.newest
            path = xpath(query, page.newest)
            for batch in self._events(library, path, query.oldest_first):
                if is_exact and not page.wants(len(batch)):
                    page.count(len(batch))
                else:
                    for handle in batch:
                        self._add(library, handle, query, page)
                yield None if page.is_full else self._entry(library, batch[-1], False).id

    def _add(self, library: Any, handle: Any, query: LogQuery, page: LogPage) -> None:
        try:
            entry = self._entry(library, handle, query.text is not None or page.wants())
        except ValueError:
            page.corrupt += 1
            return
        if query.admits(entry.level, entry.source, entry.event_id) and query.in_message(entry.message):
            page.add(entry, entry.id)

    def _entry(self, library: Any, handle: Any, is_rendered: bool) -> LogEntry:
        xml = library.EvtRender(handle, library.EvtRenderEventXml)
        return event.read(xml, self.name, _message(library, handle, event.kind(xml)[1]) if is_rendered else None)

    def _edge(self, library: Any, oldest: bool) -> LogEntry | None:
        """Return the oldest or the newest entry."""
        return next((self._entry(library, batch[0], False) for batch in self._events(library, "*", oldest)), None)

    def _events(self, library: Any, path: str, oldest_first: bool) -> Iterator[Any]:
        direction = library.EvtQueryForwardDirection if oldest_first else library.EvtQueryReverseDirection
        results = library.EvtQuery(self.name, library.EvtQueryChannelPath | direction, path)
        while batch := library.EvtNext(results, _BATCH):
            yield batch


def xpath(query: LogQuery, newest: object) -> str:
    """Return the filter for Windows. It contains only numbers and times, so nothing needs quoting.

    Raises StalePosition.
    """
    terms = []
    if query.after is not None:
        if not isinstance(query.after, int) or not isinstance(newest, int):
            raise StalePosition
        terms.append(f"EventRecordID{'>' if query.oldest_first else '<'}{query.after}")
    if isinstance(newest, int):
        terms.append(f"EventRecordID<={newest}")
    level = next((level for level, rank in logentry.RANKS.items() if rank == query.rank), "")
    if query.rank:
        terms.append(f"({_LEVELS.get(level, 'Level!=5')})")
    if query.event_ids is not None and len(query.event_ids) <= _MAX_IDS:
        terms.append("(" + " or ".join(f"EventID={number}" for number in sorted(query.event_ids)) + ")")
    bounds = [(">=", query.start), ("<", query.end)]
    times = [f"@SystemTime{sign}'{logentry.iso(time)}'" for sign, time in bounds if time is not None]
    if times:
        terms.append(f"TimeCreated[{' and '.join(times)}]")
    return f"*[System[{' and '.join(terms)}]]" if terms else "*"


def _library() -> Any:
    """Import the library. Raises Unreadable."""
    try:
        import win32evtlog
    except ImportError:
        raise Unreadable("needs_pywin32") from None
    return win32evtlog


def _channels(library: Any) -> Iterator[str]:
    channels = library.EvtOpenChannelEnum()
    while name := library.EvtNextChannelPath(channels):
        yield name


def _message(library: Any, handle: Any, source: str) -> str | None:
    """Return the message of an event; None if its provider has none or is not installed any more."""
    import pywintypes

    try:
        publisher = library.EvtOpenPublisherMetadata(source)
        message: str = library.EvtFormatMessage(publisher, handle, library.EvtFormatMessageEvent)
    except pywintypes.error:
        return None
    return message.strip()


@contextmanager
def _windows_errors() -> Iterator[None]:
    """Turn errors of Windows into Unreadable."""
    import pywintypes

    try:
        yield
    except pywintypes.error as error:
        raise Unreadable("denied" if error.winerror == _DENIED else "missing") from None
