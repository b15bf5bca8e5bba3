"""Moments as ISO 8601 texts, in UTC, and back."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """The moment that ``text`` tells, in UTC where it names no zone. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def seconds(text: str) -> float:
    """The same in seconds since 1970. Raises ValueError."""
    return moment(text).timestamp()


def written(moment: datetime, precision: str = "auto") -> str:
    """A moment in UTC as a text; ``precision`` is the `timespec` of `isoformat`."""
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def iso(seconds: float) -> str | None:
    """The text for a moment; None for one that no calendar here reaches."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return written(moment, "milliseconds")
