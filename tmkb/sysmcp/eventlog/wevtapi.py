"""The event logs of a running Windows, by pywin32. Only how events are come by is here; `event.py` reads them.

Times, levels and places are left to Windows, in its XPath. The source is not, because there case would matter, nor are
more event ids than a query may name.
"""

from __future__ import annotations

from contextlib import contextmanager

from tmkb.sysmcp.eventlog import event, logentry
from tmkb.sysmcp.eventlog.logquery import LogQuery, LogState, StalePlace, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator
    from typing import Any

    from tmkb.sysmcp.eventlog.logentry import LogEntry
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, Scan

_BATCH = 64
_MOST_IDS = 10  # that an XPath names; Windows refuses one of more than about twenty terms
_LEVELS = {"WARNING": "Level>=1 and Level<=3", "ERROR": "Level>=1 and Level<=2", "CRITICAL": "Level=1"}
_DENIED = 5  # ERROR_ACCESS_DENIED


class Channels:
    """The channels of this machine; ``only`` the named ones, if any are named."""

    def __init__(self, only: Collection[str] | None) -> None:
        self.only = only

    def logs(self) -> list[Log]:
        """By name; without the library the named ones, or one called `*`."""
        try:
            names: Collection[str] = sorted(_channels(_library()))
        except Unreadable:
            names = ["*"] if self.only is None else self.only
        return [Channel(name) for name in names if self.only is None or name in self.only]


class Channel:
    """One of them."""

    kind = "wevtapi"

    def __init__(self, name: str) -> None:
        self.name = name

    def state(self) -> Generator[None, None, LogState]:
        """Raises `Unreadable`."""
        library = _library()
        with _told():
            log = library.EvtOpenLog(self.name, library.EvtOpenChannelPath)
            size = int(library.EvtGetLogInfo(log, library.EvtLogFileSize)[0])
            oldest = self._edge(library, True)
            yield
            newest = self._edge(library, False)
        return LogState(size, oldest.time if oldest else None, newest.time if newest else None)

    def scan(self, query: LogQuery, page: LogPage) -> Scan:
        """Batch by batch. A place is the id of a record: what comes behind it is next."""
        library = _library()
        counted = query._replace(rank=0, start=None, end=None).plain  # Windows does all the filtering
        with _told():
            newest = self._edge(library, False)
            page.newest = (newest.id if newest else 0) if query.newest is None else query.newest
            path = xpath(query, page.newest)
            for batch in self._events(library, path, query.oldest_first):
                if counted and not page.wants(len(batch)):
                    page.passed(len(batch))
                else:
                    for found in batch:
                        self._tell(library, found, query, page)
                yield None if page.full else self._entry(library, batch[-1], False).id

    def _tell(self, library: Any, found: Any, query: LogQuery, page: LogPage) -> None:
        try:
            entry = self._entry(library, found, query.text is not None or page.wants())
        except ValueError:
            page.corrupt += 1
            return
        if not query.admits(entry.level, entry.source, entry.event_id) or not query.in_message(entry.message):
            return
        if page.wants():
            page.take(entry, entry.id)
        else:
            page.passed(1)

    def _entry(self, library: Any, found: Any, rendered: bool) -> LogEntry:
        xml = library.EvtRender(found, library.EvtRenderEventXml)
        return event.read(xml, self.name, _sentence(library, found, event.kind(xml)[1]) if rendered else None)

    def _edge(self, library: Any, oldest: bool) -> LogEntry | None:
        """The oldest or the newest entry there is."""
        return next((self._entry(library, batch[0], False) for batch in self._events(library, "*", oldest)), None)

    def _events(self, library: Any, path: str, oldest_first: bool) -> Iterator[Any]:
        direction = library.EvtQueryForwardDirection if oldest_first else library.EvtQueryReverseDirection
        results = library.EvtQuery(self.name, library.EvtQueryChannelPath | direction, path)
        while batch := library.EvtNext(results, _BATCH):
            yield batch


def xpath(query: LogQuery, newest: object) -> str:
    """What Windows is to leave out; it holds numbers and times only, so nothing in it needs quotes of its own.

    Raises `StalePlace`.
    """
    terms = []
    if query.after is not None:
        if not isinstance(query.after, int) or not isinstance(newest, int):
            raise StalePlace
        terms.append(f"EventRecordID{'>' if query.oldest_first else '<'}{query.after}")
    if isinstance(newest, int):
        terms.append(f"EventRecordID<={newest}")
    least = next((level for level, rank in logentry.RANKS.items() if rank == query.rank), "")
    if query.rank:
        terms.append(f"({_LEVELS.get(least, 'Level!=5')})")
    if query.event_ids is not None and len(query.event_ids) <= _MOST_IDS:
        terms.append("(" + " or ".join(f"EventID={number}" for number in sorted(query.event_ids)) + ")")
    bounds = [(">=", query.start), ("<", query.end)]
    times = [f"@SystemTime{sign}'{logentry.iso(time)}'" for sign, time in bounds if time is not None]
    if times:
        terms.append(f"TimeCreated[{' and '.join(times)}]")
    return f"*[System[{' and '.join(terms)}]]" if terms else "*"


def _library() -> Any:
    """Raises `Unreadable`."""
    try:
        import win32evtlog
    except ImportError:
        raise Unreadable("needs_pywin32") from None
    return win32evtlog


def _channels(library: Any) -> Iterator[str]:
    channels = library.EvtOpenChannelEnum()
    while name := library.EvtNextChannelPath(channels):
        yield name


def _sentence(library: Any, found: Any, source: str) -> str | None:
    """What the provider of an event has to say of it; None where it says nothing, or is no longer installed."""
    import pywintypes

    try:
        publisher = library.EvtOpenPublisherMetadata(source)
        sentence: str = library.EvtFormatMessage(publisher, found, library.EvtFormatMessageEvent)
    except pywintypes.error:
        return None
    return sentence.strip()


@contextmanager
def _told() -> Iterator[None]:
    """What Windows refuses becomes `Unreadable`."""
    import pywintypes

    try:
        yield
    except pywintypes.error as error:
        raise Unreadable("denied" if error.winerror == _DENIED else "missing") from None
