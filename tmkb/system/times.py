"""Moments as ISO 8601 texts, in UTC, and back."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str) -> float:
    """The moment that ``text`` tells, in seconds since 1970; in UTC where it names no zone. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def iso(seconds: float) -> str | None:
    """The text for a moment; None for one that no calendar here reaches."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
