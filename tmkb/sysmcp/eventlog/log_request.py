"""A question to a log: its arguments as a query, where its cursor goes on, and the page as the data of its answer.

A cursor is of one query of one kind of log. It holds how many hits are before it, how many there are if that was known,
and what the log needs to go on.
"""

from __future__ import annotations

import json

from tmkb.errors import ToolError
from tmkb.sysmcp import cursor
from tmkb.sysmcp.eventlog import logentry
from tmkb.sysmcp.eventlog.logquery import LogQuery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from tmkb.schema.values import JsonObject
    from tmkb.sysmcp.eventlog.logquery import Log, LogPage, Reached


class Asked:
    """What was asked for, and what the cursor says if there is one: where to go on, and how many hits are before."""

    def __init__(self, log: str, arguments: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
        self.cursor: str | None = arguments.get("cursor")
        self.limit = _whole(arguments, "limit", limits["page"])
        self.skip = self.before = _whole(arguments, "offset", 0)
        self.total: int | None = None
        self.query = _query(arguments)
        self.mark = cursor.mark(json.dumps([log, repr(self.query)]))
        self.kind: str | None = None
        if self.cursor is not None:
            if self.skip:
                raise ToolError("offset_beside_cursor", path="arguments.offset", received=self.skip)
            self._go_on(self.cursor)

    def _go_on(self, given: str) -> None:
        match cursor.unpacked(given):
            case [self.mark, str(kind), int(before), int() | None as total, newest, place] if (
                before >= 0 and place is not None
            ):
                self.kind, self.before, self.total = kind, before, total
                self.query = self.query._replace(newest=newest, after=place)
            case _:
                self.refuse_cursor()

    def refuse_cursor(self) -> NoReturn:
        """Raises ToolError: it is of another query, or of no query."""
        cursor.refuse(self.cursor)

    def of_its_kind(self, logs: list[Log]) -> list[Log]:
        """Those of the kind that the cursor is of. Raises ToolError where there are none."""
        alike = [log for log in logs if self.kind in (None, log.kind)]
        return alike or self.refuse_cursor()

    def answer(self, log: Log, page: LogPage, reached: Reached) -> JsonObject:
        """The data of the answer."""
        if not reached.end and not page.full and (page.hits < self.skip or reached.place is None):
            raise ToolError("timed_out")
        first = self.before
        total = page.hits + first - self.skip if self.total is None else self.total
        exact = reached.end or self.total is not None
        behind = first + len(page.entries)
        answer: JsonObject = {
            "entries": [*page.entries],
            "totalCount": total,
            "totalExact": exact,
            "page": first // self.limit + 1,
            "pageSize": self.limit,
            "skippedCorrupt": page.corrupt,
        }
        stopped = not page.full and not reached.end
        if page.cut or stopped:
            answer["truncated"] = True
        if stopped or (page.full and (total > behind or not exact)):
            place = reached.place if stopped else page.place
            state = [self.mark, log.kind, behind, total if exact else None, page.newest, place]
            answer["nextOffset"] = behind
            answer["nextCursor"] = cursor.packed(json.dumps(state, separators=(",", ":")))
        return answer


def _query(arguments: Mapping[str, Any]) -> LogQuery:
    """Raises ToolError."""
    ids = arguments.get("eventId")
    start, end = _time(arguments, "startTime"), _time(arguments, "endTime")
    if start is not None and end is not None and start > end:
        raise ToolError("times_reversed", path="arguments.endTime", received=arguments["endTime"])
    source, text = _text(arguments, "source"), _text(arguments, "text")
    return LogQuery(
        oldest_first=arguments.get("order") == "oldest",
        rank=logentry.RANKS[arguments.get("minLevel", "VERBOSE")],
        source=None if source is None else source.casefold(),
        event_ids=None if ids is None else frozenset(sorted(map(int, ids if isinstance(ids, list) else [ids]))),
        start=start,
        end=end,
        text=None if text is None else text.casefold(),
    )


def _text(arguments: Mapping[str, Any], name: str) -> str | None:
    """Raises ToolError for half a surrogate pair, which JSON can write and no log can hold."""
    text: str | None = arguments.get(name)
    try:
        if text is not None:
            text.encode()
    except UnicodeEncodeError:
        raise ToolError("not_unicode", path=f"arguments.{name}", received=text) from None
    return text


def _time(arguments: Mapping[str, Any], name: str) -> int | None:
    if name not in arguments:
        return None
    try:
        return logentry.microseconds(arguments[name])
    except ValueError:
        raise ToolError("bad_time", path=f"arguments.{name}", received=arguments[name]) from None


def _whole(arguments: Mapping[str, Any], name: str, otherwise: int) -> int:
    number = arguments.get(name, otherwise)
    if number != int(number):
        raise ToolError("not_whole", path=f"arguments.{name}", received=number)
    return int(number)
