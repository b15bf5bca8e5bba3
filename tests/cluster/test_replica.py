"""A replica in this process, with a directory in memory."""

import asyncio
import json

import pytest

from tmkb.transport.guard import Guard
from tmkb.transport.http import Request

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


def test_workers_make_no_records(make, monkeypatch):
    replica, made = make(Directory(keeps_records=False)), []
    for name in ("SessionRecord", "TaskRecord"):
        monkeypatch.setattr(f"tmkb.cluster.replica.{name}", lambda *of: made.append(of))
    headers = {"host": "localhost", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
    request = Request("POST", "/mcp", headers, body)
    replica.runtime.tasks.by_id["x"] = object()

    response = asyncio.run(replica.respond(request._replace(caller=replica.endpoint.admit(request))))

    assert response.status == 200
    assert made == []
