from datetime import UTC, datetime


def now():
    """The current time in UTC, without a zone, as SQLite stores it."""
    return datetime.now(UTC).replace(tzinfo=None)


def parse(text):
    """A time such as 2027-01-31T12:00:00, in UTC; None for None. Raises ValueError."""
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
