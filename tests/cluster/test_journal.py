"""What is written when, with a directory in memory."""

import asyncio
import contextlib

from tmkb.cluster.directory import Held
from tmkb.cluster.journal import Journal

ONE, TWO = Held("session", "1"), Held("session", "2")


class Directory:
    """Keeps the calls. Each call takes a moment, in which ``meanwhile`` is called."""

    def __init__(self):
        self.calls = []
        self.meanwhile = lambda: None

    async def write(self, writes):
        await self._call("write", [each.held for each in writes])
        return []

    async def forget(self, held):
        await self._call("forget", held)

    async def release(self, held):
        await self._call("release", held)

    async def _call(self, name, held):
        batch = [*held]
        await asyncio.sleep(0)
        self.meanwhile()
        await asyncio.sleep(0)
        self.calls += [(name, each) for each in batch]


class Record:
    """A record with a change at each look."""

    def clear(self):
        pass

    def changes(self):
        return {"about": b"x"}


def play(scenario):
    async def run():
        directory = Directory()
        journal = Journal(directory, lambda held: None, lambda error: directory.calls.append(("failed", str(error))))
        writer = asyncio.create_task(journal.run())
        try:
            async with asyncio.timeout(20):
                await scenario(journal, directory)
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer

    asyncio.run(run())


def test_changes_do_not_wait_for_those_that_follow():
    async def scenario(journal, directory):
        rounds = []

        def meanwhile():
            rounds.append(None)
            if len(rounds) < 50:
                journal.note(TWO, Record())

        directory.meanwhile = meanwhile
        journal.note(ONE, Record())
        assert await journal.written([ONE])
        assert len(rounds) < 5
        await journal.flush()
        assert len(rounds) < 5

    play(scenario)


def test_the_oldest_changes_are_written_first(monkeypatch):
    monkeypatch.setattr("tmkb.cluster.journal._BATCH_BYTES", 1)

    async def scenario(journal, directory):
        journal.note(ONE, Record())
        journal.note(TWO, Record())
        assert await journal.written([ONE])
        assert directory.calls == [("write", ONE)]
        assert await journal.written([TWO])
        assert directory.calls == [("write", ONE), ("write", TWO)]

    play(scenario)


def test_what_is_written_again_counts_as_not_written(monkeypatch):
    monkeypatch.setattr("tmkb.cluster.journal._BATCH_BYTES", 1)

    async def scenario(journal, directory):
        def lose():
            directory.meanwhile = lambda: None
            journal.rewrite()

        journal.note(ONE, Record())
        journal.note(TWO, Record())
        directory.meanwhile = lose
        assert await journal.written([ONE])
        assert directory.calls == [("write", ONE), ("write", ONE), ("write", TWO)]

    play(scenario)


def test_a_record_that_is_removed_during_an_exchange_is_removed():
    async def scenario(journal, directory):
        journal.note(ONE, Record())
        journal.note(TWO, Record())
        await journal.flush()

        def end_another():
            directory.meanwhile = lambda: None
            journal.forget(TWO)

        directory.meanwhile = end_another
        journal.forget(ONE)
        await journal.flush()
        await journal.flush()
        assert directory.calls[-2:] == [("forget", ONE), ("forget", TWO)]

    play(scenario)


def test_an_unexpected_error_is_reported_and_everything_is_written_again(monkeypatch):
    monkeypatch.setattr("tmkb.cluster.journal._PAUSE", 0.01)

    async def scenario(journal, directory):
        def fail():
            directory.meanwhile = lambda: None
            raise ValueError("unexpected")

        directory.meanwhile = fail
        journal.note(ONE, Record())
        assert not await journal.written([ONE])
        while directory.calls[-1] != ("write", ONE):
            await asyncio.sleep(0.01)
        assert directory.calls == [("failed", "unexpected"), ("write", ONE)]
        assert await journal.written([ONE])

    play(scenario)
