"""Event logs: which there are, and their entries page by page. The logs come from the sources in the settings."""

from __future__ import annotations

import os
import time
from contextlib import closing

from tmkb.errors import ToolError
from tmkb.providers.base import Provider
from tmkb.providers.operation import Pause, Progress
from tmkb.sysmcp.audit import Audit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import Any, ClassVar, NoReturn, Protocol

    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import Operation, Step, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, LogQuery, LogState, Reached, Unreadable

    class Source(Protocol):
        """Where logs come from."""

        def logs(self) -> list[Log]:
            """Those that there are now."""


_TURN = 0.01  # seconds after which others have a turn


def _places(source: Mapping[str, Any]) -> Iterable[str]:
    """Where ``source`` is on this machine."""
    return source.get("files", {}).values() or [source[key] for key in ("folder", "path") if key in source]


class EventLog(Provider):
    """The logs of the sources, in their order: of several with one name the first that can be read."""

    operations: ClassVar = {"query": (), "list_logs": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.audit = Audit(settings.get("audit"))
        self.limits: Mapping[str, Any] = settings["limits"]
        self.reasons: Mapping[str, str] = settings["reasons"]
        kept = self.limits["indexed_records"]
        opened = [_source(source, kept) for source in settings["sources"]]
        self.log_sources: list[Source] = [source for source in opened if source is not None]

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a note with what is served, for the log."""
        named = ", ".join(" ".join([each["kind"], *_places(each)]) for each in settings["sources"])
        note = ["serves_logs", {"sources": named}] if named else ["serves_no_logs", {}]
        return {"notes": [note]}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """The operation called ``name``, recorded as the tool that ``definition`` names."""
        found: dict[str, Callable[..., StepGenerator]] = {"query": self.query, "list_logs": self.list_logs}
        return self.audit.recorded(definition["name"], found[name])

    def list_logs(self) -> StepGenerator:
        """All logs, each with what can be said of it at once."""
        from tmkb.sysmcp.eventlog.logquery import Unreadable

        named: dict[str, list[Log]] = {}
        for log in self._logs():
            named.setdefault(log.name.casefold(), []).append(log)
        listed: list[JsonValue] = []
        for logs in named.values():
            yield Pause(0)
            faults = []
            for log in logs:
                try:
                    listed.append((yield from self._described(log)))
                    break
                except Unreadable as fault:
                    faults.append(fault)
                except OSError:  # of the disk, or of a file that has gone meanwhile
                    faults.append(Unreadable("corrupt"))
            else:
                unknown = {"recordCount": None, "sizeBytes": 0, "oldest": None, "newest": None}
                reason = self.reasons[_foremost(faults).cause]
                listed.append(
                    {"name": logs[0].name, "kind": logs[0].kind, **unknown, "readable": False, "reason": reason}
                )
        return {"logs": listed}

    def query(self, logName: str, **arguments: Any) -> StepGenerator:
        """A page of the entries of a log that pass all filters.

        Raises ToolError where an argument makes no sense, where there is no such log, or none that can be read, and
        where time has run out before the first entry of the page was reached.
        """
        from tmkb.sysmcp.eventlog.log_request import Asked
        from tmkb.sysmcp.eventlog.logquery import LogPage, StalePlace, Unreadable

        logs = [log for log in self._logs() if log.name.casefold() == logName.casefold()]
        if not logs:
            raise ToolError("log_not_found", log=logName)
        asked = Asked(logs[0].name, arguments, self.limits)
        faults = []
        for log in asked.of_its_kind(logs):
            page = LogPage(asked.skip, asked.limit, self.limits["result_bytes"], self.limits["message_bytes"])
            try:
                reached = yield from self._fill(log, asked.query, page, asked.total is not None)
                return asked.answer(log, page, reached)
            except StalePlace:
                asked.refuse_cursor()
            except Unreadable as fault:
                faults.append(fault)
            except OSError:
                faults.append(Unreadable("corrupt"))
        return self._refuse(logs[0].name, _foremost(faults))

    def _logs(self) -> list[Log]:
        return [log for source in self.log_sources for log in source.logs()]

    def _described(self, log: Log) -> Generator[Step, JsonObject | None, JsonObject]:
        from tmkb.sysmcp.eventlog.logentry import iso
        from tmkb.sysmcp.eventlog.logquery import LogPage, LogQuery

        state = yield from self._state(log)
        page = LogPage(0, 0, 0, 0)  # counts
        reached = yield from self._fill(log, LogQuery(), page, False)
        return {
            "name": log.name,
            "kind": log.kind,
            "recordCount": page.hits if reached.end else None,
            "sizeBytes": state.size,
            "oldest": iso(state.oldest),
            "newest": iso(state.newest),
            "readable": True,
        }

    def _state(self, log: Log) -> Generator[Pause, None, LogState]:
        """How a log is now, as far as that can be found out in time. Raises Unreadable."""
        from tmkb.sysmcp.eventlog.logquery import LogState

        until = time.monotonic() + self.limits["seconds"]
        with closing(log.state()) as steps:
            while True:
                try:
                    next(steps)
                except StopIteration as done:
                    state: LogState = done.value
                    return state
                if time.monotonic() > until:
                    return LogState(None, None, None)
                yield Pause(0)

    def _fill(
        self, log: Log, query: LogQuery, page: LogPage, counted: bool
    ) -> Generator[Step, JsonObject | None, Reached]:
        """Fill a page and count on, unless that has been done (``counted``): both as long as the settings allow."""
        from tmkb.sysmcp.eventlog.logquery import Reached

        turn = time.monotonic()
        until = turn + self.limits["seconds"]
        counting = False
        place: JsonValue = None
        scan = log.scan(query, page)
        try:
            for reached in scan:
                place = place if reached is None else reached
                now = time.monotonic()
                if page.full and not counting:
                    until, counting = now + (0 if counted else self.limits["counting_seconds"]), True
                if now >= until:
                    return Reached(False, place)
                if now - turn > _TURN:
                    yield Progress(page.hits)
                    turn = time.monotonic()
        finally:
            scan.close()
        return Reached(True, place)

    def _refuse(self, log: str, fault: Unreadable) -> NoReturn:
        why = self.reasons[fault.cause]
        if fault.cause == "denied":
            raise ToolError("log_denied", log=log, why=why)
        if fault.cause == "corrupt":
            raise ToolError("log_corrupt", log=log, why=why)
        raise ToolError("log_unavailable", log=log, why=why)


def _foremost(faults: list[Unreadable]) -> Unreadable:
    """The one that is worth telling: that a log is not there says less than that it cannot be read."""
    return next((fault for fault in faults if fault.cause != "missing"), faults[0])


def _source(settings: Mapping[str, Any], kept: int) -> Source | None:
    """Where logs come from, as one item of the setting `sources` says; None where it is for another system."""
    match settings["kind"]:
        case "evtx":
            from tmkb.sysmcp.eventlog.evtx import Folder

            return Folder(settings["folder"], settings.get("only"), kept)
        case "journal":
            from tmkb.sysmcp.eventlog.journal import Journal

            return Journal(settings["path"], settings["logs"])
        case "textlog":
            from tmkb.sysmcp.eventlog.textlog import Texts

            return Texts(settings["files"])
    if os.name != "nt":
        return None
    from tmkb.sysmcp.eventlog.wevtapi import Channels

    return Channels(settings.get("only"))
