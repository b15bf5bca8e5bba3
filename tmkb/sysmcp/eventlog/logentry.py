"""Log entries: levels, times in microseconds since 1970, and JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tmkb.schema.values import JsonObject
from tmkb.sysmcp import times

RANKS = {"VERBOSE": 0, "INFORMATION": 1, "WARNING": 2, "ERROR": 3, "CRITICAL": 4}
# The level of each severity of syslog
SEVERITIES = (*["CRITICAL"] * 3, "ERROR", "WARNING", *["INFORMATION"] * 2, "VERBOSE")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class LogEntry(NamedTuple):
    """An entry of a log. ``time`` is in microseconds since 1970 or None; ``more`` has fields of one kind of log."""

    id: int
    log: str
    level: str
    source: str
    event_id: int
    message: str
    time: int | None
    more: JsonObject

    def value(self, event_text_bytes: int) -> JsonObject:
        """Return the entry as JSON, with at most ``event_text_bytes`` bytes of the message."""
        encoded = self.message.encode("utf-8", "replace")
        value: JsonObject = {
            "id": self.id,
            "logName": self.log,
            "level": self.level,
            "source": self.source,
            "eventId": self.event_id,
            "message": encoded[:event_text_bytes].decode("utf-8", "ignore"),
            "timestamp": iso(self.time),
            **self.more,
        }
        if len(encoded) > event_text_bytes:
            value["messageTruncated"] = True
        return value


def iso(time: int | None) -> str | None:
    """Format microseconds since 1970 as ISO 8601 in UTC; None if they are None or outside the calendar."""
    try:
        return None if time is None else times.isoformat(_EPOCH + time * _MICROSECOND)
    except OverflowError:
        return None


def parse_microseconds(text: str) -> int:
    """Parse an ISO 8601 time, which is UTC if it has no offset. Raises ValueError."""
    try:
        return microseconds(times.parse(text))
    except OverflowError:
        raise ValueError(text) from None


def microseconds(time: datetime) -> int:
    """Return microseconds since 1970; a time without an offset is local. Raises OverflowError."""
    return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND
