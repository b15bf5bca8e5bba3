"""Writes the records of a replica: all changes since the last exchange with the directory in the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from tmkb.cluster.directory import Changes, Directory, Held, Unavailable, Write

if TYPE_CHECKING:

    class Record(Protocol):
        """What has been written about a session or a task."""

        def clear(self) -> None:
            """Forget what has been written."""

        def changes(self) -> dict[str, bytes | None]:
            """Return the fields that have changed since the last call."""


_BATCH_BYTES = 1 << 20  # of one exchange, at least one record
_PAUSE = 1.0  # seconds between an unexpected error and the next attempt


class Journal:
    """Keeps the records in a directory up to date.

    Nothing about a session leaves the replica before its record is written (`written`). So a replica that continues the
    session knows everything that the client knows. While the directory is unavailable, nothing waits.
    """

    def __init__(
        self, directory: Directory, on_lost: Callable[[Held], None], on_failure: Callable[[Exception], None]
    ) -> None:
        """Start empty.

        Args:
            directory: where the records are.
            on_lost: called with what belongs to another replica by now.
            on_failure: called with an unexpected error. After a second, all records are written again.
        """
        self.directory = directory
        self.on_lost = on_lost
        self.on_failure = on_failure
        self.records: dict[Held, Record] = {}
        self.changes: dict[Held, dict[str, bytes | None]] = {}  # not written
        self.whole: set[Held] = set()  # whose changes are the whole record
        self.forgotten: set[Held] = set()
        self.released: set[Held] = set()
        self.numbers: dict[Held, int] = {}  # of the latest change
        self.since: dict[Held, int] = {}  # the first number in each of `changes`, in ascending order
        self.noted = self.done = 0  # the latest change of all, and the last of those that are all written
        self.wanted = asyncio.Event()
        self.exchanged = asyncio.Event()  # set and replaced after each exchange
        self.available = True

    def note(self, held: Held, record: Record) -> None:
        """Note what has changed in ``record``."""
        if held not in self.records:
            self.records[held] = record
            self.whole.add(held)
        if changes := self.records[held].changes():
            waiting = self.changes.setdefault(held, {})
            waiting.update(changes)
            self.noted += 1
            self.numbers[held] = self.noted
            self.since.setdefault(held, self.noted)
            self.wanted.set()

    def forget(self, held: Held) -> None:
        """Remove the record of something that has ended."""
        if self.discard(held):
            self.forgotten.add(held)
            self.wanted.set()

    def release(self, held: Held) -> None:
        """Write the last changes, and let any replica continue."""
        if held in self.records:
            self.released.add(held)
            self.wanted.set()

    def discard(self, held: Held) -> bool:
        """Write nothing more about ``held``; return whether there was a record."""
        self.changes.pop(held, None)
        self.since.pop(held, None)
        self.numbers.pop(held, None)
        self.whole.discard(held)
        return self.records.pop(held, None) is not None

    def rewrite(self) -> None:
        """Write all records again."""
        self.available = True
        for held, record in self.records.items():
            record.clear()
            self.changes.pop(held, None)
            self.whole.add(held)
            self.since.pop(held, None)
            self.note(held, record)
            if held in self.since:
                self.since[held] = 1  # nothing of it is written any more
        self.wanted.set()

    async def written(self, held: Iterable[Held]) -> bool:
        """Wait until all changes of ``held`` so far are written; return whether they are."""
        last = max((self.numbers.get(each, 0) for each in held), default=0)
        while self.done < last and self.available:
            await self.exchanged.wait()
        return self.done >= last

    async def flush(self) -> None:
        """Wait until everything so far is written, removed or released."""
        last, ended = self.noted, self.forgotten | self.released
        while (self.done < last or ended & (self.forgotten | self.released)) and self.available:
            await self.exchanged.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        failed = False
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            try:
                if failed:
                    self.rewrite()
                failed = False
                await self._exchange()
            except Unavailable:  # `rewrite` follows
                self.available = False
            except Exception as error:
                self.available, failed = False, True
                self.on_failure(error)
            else:
                if self.available:
                    self.done = next(iter(self.since.values()), self.noted + 1) - 1
                if self.changes or self.forgotten or self.released:
                    self.wanted.set()
            self.exchanged.set()
            self.exchanged = asyncio.Event()
            if failed:
                await asyncio.sleep(_PAUSE)
                self.wanted.set()

    async def _exchange(self) -> None:
        """Write the oldest changes."""
        writes, size = [], 0
        while self.changes and size < _BATCH_BYTES:
            held = next(iter(self.changes))
            changes = self.changes.pop(held)
            self.since.pop(held)
            writes.append(Write(held, changes, held in self.whole))
            self.whole.discard(held)
            size += _size(changes)
        if forgotten := {*self.forgotten}:
            await self.directory.forget(forgotten)
            self.forgotten -= forgotten
        for held in await self.directory.write(writes) if writes else ():
            if self.discard(held):
                self.on_lost(held)
        if released := self.released - self.changes.keys():
            await self.directory.release(released)
            self.released -= released
            for held in released:
                self.discard(held)


def _size(changes: Changes) -> int:
    return sum(len(value or b"") + 64 for value in changes.values())
