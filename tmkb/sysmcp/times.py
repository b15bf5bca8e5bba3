"""ISO 8601 times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: str) -> datetime:
    """Parse an ISO 8601 time, which is UTC if it has no offset. Raises ValueError."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def isoformat(time: datetime, precision: str = "auto") -> str:
    """Format a time in UTC; ``precision`` is the ``timespec`` of `datetime.isoformat`."""
    return time.isoformat(timespec=precision).replace("+00:00", "Z")


def from_timestamp(seconds: float) -> str | None:
    """Format seconds since 1970 with milliseconds; None if they are outside the calendar."""
    try:
        return isoformat(datetime.fromtimestamp(seconds, UTC), "milliseconds")
    except (OverflowError, ValueError, OSError):
        return None
