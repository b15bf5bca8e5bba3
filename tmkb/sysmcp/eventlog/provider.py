"""The provider ``eventlog``: list logs, and query their entries page by page. The settings name the sources."""

from __future__ import annotations

import sys
from contextlib import closing

from tmkb.errors import ToolError
from tmkb.providers.operation import Pause, Progress
from tmkb.sysmcp.audit import AuditedProvider
from tmkb.sysmcp.budget import TimeBudget, limited
from tmkb.sysmcp.faults import TimeUp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import Any, ClassVar, Protocol

    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import Step, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, LogQuery, ScanEnd

    Steps = Generator[Step, JsonObject | None, JsonObject]

    class Source(Protocol):
        """A source of logs."""

        def logs(self) -> list[Log]:
            """Return the logs that exist now."""


class EventLog(AuditedProvider):
    """The logs of the sources, in their order. Of several logs with one name, the first readable one is served."""

    operations: ClassVar = {"query": (), "list_logs": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.limits: Mapping[str, Any] = settings["limits"]
        self.reasons: Mapping[str, str] = settings["reasons"]
        sources = [_open_source(source, self.limits["indexed_records"]) for source in settings["sources"]]
        self.log_sources: list[Source] = [source for source in sources if source is not None]

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a log line that names the sources."""
        sources = ", ".join(" ".join([each["kind"], *_paths(each)]) for each in settings["sources"])
        return {"notes": [["serves_logs", {"sources": sources}] if sources else ["serves_no_logs", {}]]}

    def list_logs(self) -> StepGenerator:
        """List all logs with their size and range, or the reason why a log cannot be read."""
        from tmkb.sysmcp.eventlog.logquery import Unreadable

        by_name: dict[str, list[Log]] = {}
        for log in self._logs():
            by_name.setdefault(log.name.casefold(), []).append(log)
        listed: list[JsonValue] = []
        for logs in by_name.values():
            yield Pause(0)
            try:
                listed.append((yield from self._first_readable(logs, self._describe)))
            except Unreadable as fault:
                unknown = {"recordCount": None, "sizeBytes": 0, "oldest": None, "newest": None}
                about: JsonObject = {"name": logs[0].name, "kind": logs[0].kind, **unknown, "readable": False}
                listed.append({**about, "reason": self.reasons[fault.cause]})
        return {"logs": listed}

    def query(self, logName: str, **arguments: Any) -> StepGenerator:
        """Return a page of the entries that pass all filters.

        Raises ToolError for invalid arguments, for a missing or unreadable log, and if the time limit ends before the
        scan reaches the page.
        """
        from tmkb.sysmcp.eventlog.log_request import LogRequest
        from tmkb.sysmcp.eventlog.logquery import LogPage, StalePosition, Unreadable

        logs = [log for log in self._logs() if log.name.casefold() == logName.casefold()]
        if not logs:
            raise ToolError("log_not_found", log=logName)
        name = logs[0].name
        request = LogRequest(name, arguments, self.limits)

        def read(log: Log) -> Steps:
            page = LogPage(request.skip, request.limit, self.limits["result_bytes"], self.limits["event_text_bytes"])
            return request.result(log, page, (yield from self._fill(log, request.query, page, request.total is None)))

        try:
            return (yield from self._first_readable(request.candidates(logs), read))
        except StalePosition:
            request.reject_cursor()
        except Unreadable as fault:
            why = self.reasons[fault.cause]
            if fault.cause == "denied":
                raise ToolError("log_denied", log=name, why=why) from None
            if fault.cause == "corrupt":
                raise ToolError("log_corrupt", log=name, why=why) from None
            raise ToolError("log_unavailable", log=name, why=why) from None

    def _logs(self) -> list[Log]:
        return [log for source in self.log_sources for log in source.logs()]

    def _first_readable(self, logs: Iterable[Log], read: Callable[[Log], Steps]) -> Steps:
        """Return the result of ``read`` for the first readable log.

        Raises Unreadable, if possible for another cause than a missing log.
        """
        from tmkb.sysmcp.eventlog.logquery import Unreadable

        faults = []
        for log in logs:
            try:
                return (yield from read(log))
            except Unreadable as fault:
                faults.append(fault)
            except OSError:  # of the disk, or because the file was deleted
                faults.append(Unreadable("corrupt"))
        raise next((fault for fault in faults if fault.cause != "missing"), faults[0])

    def _describe(self, log: Log) -> Steps:
        from tmkb.sysmcp.eventlog.logentry import iso
        from tmkb.sysmcp.eventlog.logquery import LogPage, LogQuery, LogState

        try:
            state = yield from limited(log.state(), self.limits["seconds"])
        except TimeUp:
            state = LogState(None, None, None)
        page = LogPage(0, 0, 0, 0)  # only counts
        end = yield from self._fill(log, LogQuery(), page, True)
        return {
            "name": log.name,
            "kind": log.kind,
            "recordCount": page.hits if end.is_complete else None,
            "sizeBytes": state.size,
            "oldest": iso(state.oldest),
            "newest": iso(state.newest),
            "readable": True,
        }

    def _fill(
        self, log: Log, query: LogQuery, page: LogPage, counts: bool
    ) -> Generator[Step, JsonObject | None, ScanEnd]:
        """Fill a page within the time limit; with ``counts``, continue to count hits within another limit."""
        from tmkb.sysmcp.eventlog.logquery import ScanEnd

        budget = TimeBudget(self.limits["seconds"])
        is_counting = False
        last: JsonValue = None
        with closing(log.scan(query, page)) as scan:
            for position in scan:
                last = last if position is None else position
                if page.is_full and not is_counting:
                    budget.restart(self.limits["counting_seconds"] if counts else 0)
                    is_counting = True
                if budget.is_spent():
                    return ScanEnd(False, last)
                if budget.is_step_over():
                    yield Progress(page.hits)
                    budget.begin_step()
        return ScanEnd(True, last)


def _paths(source: Mapping[str, Any]) -> Iterable[str]:
    """Return the paths that a source reads."""
    return source.get("files", {}).values() or [source[key] for key in ("folder", "path") if key in source]


def _open_source(settings: Mapping[str, Any], max_records: int) -> Source | None:
    """Open an item of the setting `sources`; return None if it is for another operating system."""
    match settings["kind"]:
        case "evtx":
            from tmkb.sysmcp.eventlog.evtx import Folder

            return Folder(settings["folder"], settings.get("only"), max_records)
        case "journal":
            from tmkb.sysmcp.eventlog.journal import Journal

            return Journal(settings["path"], settings["logs"])
        case "textlog":
            from tmkb.sysmcp.eventlog.textlog import TextLogs

            return TextLogs(settings["files"])
    if sys.platform == "win32":
        from tmkb.sysmcp.eventlog.wevtapi import Channels

        return Channels(settings.get("only"))
    return None
