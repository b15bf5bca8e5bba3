"""Memory budgets: how many bytes one connection, or one principal with all its connections, may make the server keep.

What a request needs is held and has to fit: otherwise the request is refused. What is only kept in case a client asks
for it again is an entry: the oldest entries make room.
"""

from __future__ import annotations

import sys
from collections import OrderedDict

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Entry:
    """Something that a budget may drop to make room. ``forget`` is called when it does."""

    __slots__ = ("budget", "forget", "size")

    def __init__(self, size: int, forget: Callable[[], None]) -> None:
        self.size = size
        self.forget = forget
        self.budget: Budget | None = None


class Budget:
    """A limit in bytes. What counts against a budget also counts against its parent, whose limit holds as well."""

    __slots__ = ("entries", "held", "kept", "limit", "parent")

    def __init__(self, limit: int, parent: Budget | None = None) -> None:
        self.limit = limit
        self.parent = parent
        self.held = 0
        self.kept = 0  # bytes of `entries`
        self.entries: OrderedDict[Entry, None] = OrderedDict()  # oldest first

    @property
    def most(self) -> int:
        """The size of the largest thing that can fit."""
        return min(level.limit for level in self._levels())

    def fits(self, size: int) -> bool:
        """Return whether `hold` has room for ``size`` bytes."""
        return all(level.held + size <= level.limit for level in self._levels())

    def hold(self, size: int) -> None:
        """Count ``size`` bytes until `release`.

        Raises:
            ProtocolError: `too_much_held`, if they do not fit.
        """
        for level in self._levels():
            if level.held + size > level.limit:
                raise ProtocolError("too_much_held", limit=level.limit)
        for level in self._levels():
            level.held += size
        self._make_room()

    def release(self, size: int) -> None:
        """Count ``size`` bytes less."""
        for level in self._levels():
            level.held -= size

    def keep(self, entry: Entry) -> None:
        """Count ``entry`` until `discard`. Older entries make room; an entry that fits nowhere is forgotten at once."""
        entry.budget = self
        for level in self._levels():
            level.entries[entry] = None
            level.kept += entry.size
        self._make_room()

    def discard(self, entry: Entry) -> None:
        """Stop counting ``entry``."""
        entry.budget = None
        for level in self._levels():
            del level.entries[entry]
            level.kept -= entry.size

    def close(self) -> None:
        """Count nothing against the parent any more: the connection has ended."""
        parent, self.parent = self.parent, None
        if parent is not None:
            parent.release(self.held)
            for entry in self.entries:
                parent.discard(entry)
                entry.budget = self

    def _levels(self) -> Iterator[Budget]:
        level: Budget | None = self
        while level is not None:
            yield level
            level = level.parent

    def _make_room(self) -> None:
        for level in self._levels():
            while level.entries and level.held + level.kept > level.limit:
                oldest = next(iter(level.entries))
                assert oldest.budget is not None
                oldest.budget.discard(oldest)
                oldest.forget()


def footprint(value: Any) -> int:
    """Return how many bytes of memory a decoded JSON value takes; values that Python shares count each time."""
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
