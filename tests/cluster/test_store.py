"""The directory in Redis, with a client that receives what a test publishes."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

pytest.importorskip("redis")


class Client:
    """Receives messages, then waits."""

    def __init__(self, messages):
        self.messages = [*messages]

    @contextlib.asynccontextmanager
    async def pubsub(self, **options):
        yield self

    async def subscribe(self, channel):
        pass

    async def get_message(self, timeout):
        if not self.messages:
            await asyncio.sleep(3600)
        return {"data": self.messages.pop(0)}


def test_news_that_cannot_be_handled_are_logged_and_do_not_end_the_listener():
    from tmkb.cluster.store import Store

    lines, received = [], []
    log = SimpleNamespace(write=lambda line, **fields: lines.append((line, fields)), flush=lambda: None)
    store = Store("redis://127.0.0.1:1/0", "one", SimpleNamespace(spec={"server": {"name": "x"}}, log=log))
    store.client = Client([b"other bad", b"other bad", b"other good"])

    def on_news(news):
        if news == b"bad":
            raise ValueError("unexpected")
        received.append(news)

    async def scenario():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await store._listen(on_news)

    asyncio.run(scenario())

    assert received == [b"good"]
    assert [line for line, _ in lines] == ["cluster_failed"] * 2
