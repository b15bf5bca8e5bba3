"""A request for a page of a log: its arguments as a query, its cursor, and the result.

A cursor belongs to one query of one kind of log. It holds the number of hits so far, their total if it is known, and
the state of the scan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from tmkb.errors import ToolError
from tmkb.schema.values import JsonObject
from tmkb.sysmcp import cursor
from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logquery import Log, LogPage, LogQuery, ScanEnd


class LogRequest:
    """The query, and where to continue if there is a cursor. Raises ToolError for invalid arguments."""

    def __init__(self, log: str, arguments: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
        self.cursor: str | None = arguments.get("cursor")
        self.limit = _whole(arguments, "limit", limits["page"])
        self.skip = self.first = _whole(arguments, "offset", 0)  # first: number of the first hit on this page
        self.total: int | None = None
        self.query = _query(arguments)
        self.digest = cursor.digest(json.dumps([log, repr(self.query)]))
        self.kind: str | None = None
        if self.cursor is None:
            return
        if self.skip:
            raise ToolError("offset_beside_cursor", path="arguments.offset", received=self.skip)
        match cursor.decode(self.cursor):
            case [self.digest, str(kind), int(first), int() | None as total, newest, position] if (
                first >= 0 and position is not None
            ):
                self.kind, self.first, self.total = kind, first, total
                self.query = self.query._replace(newest=newest, after=position)
            case _:
                self.reject_cursor()

    def reject_cursor(self) -> NoReturn:
        """Raise the ToolError for a cursor of another query, or an invalid one."""
        cursor.reject(self.cursor)

    def candidates(self, logs: list[Log]) -> list[Log]:
        """Return the logs of the cursor's kind. Raises ToolError if there are none."""
        return [log for log in logs if self.kind in (None, log.kind)] or self.reject_cursor()

    def result(self, log: Log, page: LogPage, end: ScanEnd) -> JsonObject:
        """Return the page for the client. Raises ToolError if the scan did not reach it in time."""
        is_stopped = not page.is_full and not end.is_complete
        if is_stopped and (page.hits < self.skip or end.position is None):
            raise ToolError("timed_out")
        total = page.hits + self.first - self.skip if self.total is None else self.total
        is_exact = end.is_complete or self.total is not None
        following = self.first + len(page.entries)
        result: JsonObject = {
            "entries": [*page.entries],
            "totalCount": total,
            "totalExact": is_exact,
            "page": self.first // self.limit + 1,
            "pageSize": self.limit,
            "skippedCorrupt": page.corrupt,
        }
        if page.is_cut or is_stopped:
            result["truncated"] = True
        if is_stopped or (page.is_full and (total > following or not is_exact)):
            position = end.position if is_stopped else page.position
            state = [self.digest, log.kind, following, total if is_exact else None, page.newest, position]
            result["nextOffset"] = following
            result["nextCursor"] = cursor.encode(json.dumps(state, separators=(",", ":")))
        return result


def _query(arguments: Mapping[str, Any]) -> LogQuery:
    ids = arguments.get("eventId")
    start, end = _time(arguments, "startTime"), _time(arguments, "endTime")
    if start is not None and end is not None and start > end:
        raise ToolError("times_reversed", path="arguments.endTime", received=arguments["endTime"])
    return LogQuery(
        oldest_first=arguments.get("order") == "oldest",
        rank=logentry.RANKS[arguments.get("minLevel", "VERBOSE")],
        source=_folded(arguments, "source"),
        event_ids=None if ids is None else frozenset(sorted(map(int, ids if isinstance(ids, list) else [ids]))),
        start=start,
        end=end,
        text=_folded(arguments, "text"),
    )


def _folded(arguments: Mapping[str, Any], name: str) -> str | None:
    """Return a casefolded argument. Raises ToolError for lone surrogates, which JSON can contain and logs cannot."""
    text: str | None = arguments.get(name)
    if text is None:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError("not_unicode", path=f"arguments.{name}", received=text) from None
    return text.casefold()


def _time(arguments: Mapping[str, Any], name: str) -> int | None:
    try:
        return logentry.parse_microseconds(arguments[name]) if name in arguments else None
    except ValueError:
        raise ToolError("bad_time", path=f"arguments.{name}", received=arguments[name]) from None


def _whole(arguments: Mapping[str, Any], name: str, default: int) -> int:
    number = arguments.get(name, default)
    if number != int(number):
        raise ToolError("not_whole", path=f"arguments.{name}", received=number)
    return int(number)
