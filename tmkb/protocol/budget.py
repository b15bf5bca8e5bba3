"""Memory budgets: the bytes that the server may store for one connection, or for all connections of one principal.

A request reserves the memory that it needs, and is refused if that does not fit. Data that a client may request again,
such as old events, is stored as entries. If room is needed, the oldest entries are evicted.
"""

from __future__ import annotations

import sys

from tmkb.errors import ProtocolError
from tmkb.stdlib import OrderedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Entry:
    """Data that a budget may evict, and then calls ``on_evict``. ``size``: in bytes."""

    __slots__ = ("budget", "on_evict", "size")  # there can be many

    def __init__(self, size: int, on_evict: Callable[[], None]) -> None:
        self.size = size
        self.on_evict = on_evict
        self.budget: Budget | None = None


class Budget:
    """A limit in bytes. Everything in a budget also counts against the limit of its parent."""

    def __init__(self, limit: int, parent: Budget | None = None) -> None:
        self.limit = limit
        self.parent = parent
        self.reserved = 0  # bytes
        self.entry_bytes = 0
        self.entries: OrderedDict[Entry, None] = OrderedDict()  # oldest first

    @property
    def capacity(self) -> int:
        """The largest size that can ever fit, in bytes."""
        return min(level.limit for level in self._levels())

    def fits(self, size: int) -> bool:
        """Return whether `reserve` has room for ``size`` bytes."""
        return all(level.reserved + size <= level.limit for level in self._levels())

    def reserve(self, size: int) -> None:
        """Reserve ``size`` bytes until `release`.

        Raises:
            ProtocolError: `too_much_held`, if they do not fit.
        """
        for level in self._levels():
            if level.reserved + size > level.limit:
                raise ProtocolError("too_much_held", limit=level.limit)
        for level in self._levels():
            level.reserved += size
        self._evict()

    def release(self, size: int) -> None:
        """Release ``size`` bytes of those that are reserved."""
        for level in self._levels():
            level.reserved -= size

    def add(self, entry: Entry) -> None:
        """Add ``entry`` and evict the oldest entries beyond the limit, which may include ``entry`` itself."""
        entry.budget = self
        for level in self._levels():
            level.entries[entry] = None
            level.entry_bytes += entry.size
        self._evict()

    def remove(self, entry: Entry) -> None:
        """Remove ``entry``."""
        entry.budget = None
        for level in self._levels():
            del level.entries[entry]
            level.entry_bytes -= entry.size

    def close(self) -> None:
        """Detach from the parent, because the connection has ended."""
        parent, self.parent = self.parent, None
        if parent is not None:
            parent.release(self.reserved)
            for entry in self.entries:
                parent.remove(entry)
                entry.budget = self

    def _levels(self) -> Iterator[Budget]:
        level: Budget | None = self
        while level is not None:
            yield level
            level = level.parent

    def _evict(self) -> None:
        for level in self._levels():
            while level.entries and level.reserved + level.entry_bytes > level.limit:
                oldest = next(iter(level.entries))
                assert oldest.budget is not None
                oldest.budget.remove(oldest)
                oldest.on_evict()


def footprint(value: Any) -> int:
    """Return the memory of a decoded JSON value in bytes. A shared object counts at each reference."""
    size, pending = 0, [value]
    while pending:
        each = pending.pop()
        size += sys.getsizeof(each)
        if isinstance(each, dict):
            pending += each
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return size
