"""An entry of a log, of whatever kind: its levels, its time in UTC, and how it reads as JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tmkb.sysmcp import times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.values import JsonObject

RANKS = {"VERBOSE": 0, "INFORMATION": 1, "WARNING": 2, "ERROR": 3, "CRITICAL": 4}
SEVERITIES = (
    "CRITICAL",
    "CRITICAL",
    "CRITICAL",
    "ERROR",
    "WARNING",
    "INFORMATION",
    "INFORMATION",
    "VERBOSE",
)  # of syslog

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class LogEntry(NamedTuple):
    """``time`` is in microseconds since 1970, None where the entry has none; ``more`` is what only some kinds have."""

    id: int
    log: str
    level: str
    source: str
    event_id: int
    message: str
    time: int | None
    more: JsonObject

    def value(self, message_bytes: int) -> JsonObject:
        """The entry as JSON; of the message at most so many bytes of UTF-8."""
        encoded = self.message.encode("utf-8", "replace")
        value: JsonObject = {
            "id": self.id,
            "logName": self.log,
            "level": self.level,
            "source": self.source,
            "eventId": self.event_id,
            "message": encoded[:message_bytes].decode("utf-8", "ignore"),
            "timestamp": iso(self.time),
            **self.more,
        }
        if len(encoded) > message_bytes:
            value["messageTruncated"] = True
        return value


def iso(time: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC; None where there are none, or none that a calendar has."""
    try:
        return None if time is None else times.written(_EPOCH + time * _MICROSECOND)
    except OverflowError:
        return None


def microseconds(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 time, which is UTC where it names no zone. Raises ValueError."""
    try:
        return of(times.moment(text))
    except OverflowError:
        raise ValueError(text) from None


def of(time: datetime) -> int:
    """Microseconds since 1970; a time without a zone is local. Raises OverflowError."""
    return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND
