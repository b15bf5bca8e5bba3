"""A replica in this process, with a directory in memory."""

import asyncio

import pytest

from tmkb.transport.guard import Guard

pytestmark = pytest.mark.needs("httpx2")


class Directory:
    """Knows nothing, and keeps the calls."""

    id = address = "one"

    def __init__(self, keeps_records=True):
        self.keeps_records = keeps_records
        self.calls = []

    def name(self, id_):
        return id_

    async def start(self, on_news, on_loss, in_use):
        self.calls.append("start")

    async def leave(self):
        self.calls.append("leave")

    async def stop(self):
        self.calls.append("stop")


@pytest.fixture
def make(runtimes, quiet):
    """A function that returns a replica with a directory."""
    from tmkb.cluster.replica import Replica
    from tmkb.server.runtime import Runtime

    source = runtimes("everything")
    return lambda directory: Replica(Runtime(source.spec, source.provider, quiet(source.spec)), Guard(), directory)


def test_a_signal_before_the_start_is_announced(make):
    directory = Directory()
    replica = make(directory)
    replica.drain()

    async def scenario():
        await replica.start()
        await asyncio.sleep(0)
        await replica.stop()

    asyncio.run(scenario())

    assert directory.calls == ["start", "leave", "stop"]
