"""Replicas in one process, with a real Redis: what happens while other requests, restarts and refusals happen."""

import asyncio
import base64
import json
import time

import pytest

from tests.cluster.servers import JSON, META, STATELESS, Redis
from tests.cluster.test_takeover import LOCAL, Network, kill
from tmkb.errors import ProtocolError
from tmkb.transport.guard import Guard
from tmkb.transport.http import Request

pytestmark = [pytest.mark.process, pytest.mark.needs("redis", "httpx2")]


@pytest.fixture(scope="module")
def redis():
    server = Redis()
    yield server
    server.kill()


@pytest.fixture
def make(redis, runtimes, quiet):
    """A coroutine that starts a replica at an address. ``make.replicas`` are those that find each other; ``make.play``
    runs a scenario, and ends them."""
    from tmkb.cluster.replica import Replica
    from tmkb.cluster.store import Store
    from tmkb.server.runtime import Runtime

    source = runtimes("everything")
    redis.command("FLUSHALL")

    async def start(address):
        runtime = Runtime(source.spec, source.provider, quiet(source.spec))
        replica = Replica(runtime, Guard(), Store(redis.url, address, runtime))
        replica.forwarder = Network(start.replicas)
        await replica.start()
        start.replicas.append(replica)
        return replica

    async def end(scenario):
        try:
            await scenario()
        finally:
            for replica in start.replicas:
                await kill(replica)

    start.replicas, start.play = [], lambda scenario: asyncio.run(end(scenario))
    return start


async def post(replica, headers, **message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    request = Request("POST", "/mcp", headers, body)
    return await replica.respond(request._replace(caller=replica.endpoint.admit(request)))


async def begin(replica):
    """The headers of a new session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    response = await post(replica, LOCAL, id=0, method="initialize", params=params)
    headers = {**LOCAL, "mcp-session-id": response.headers["mcp-session-id"]}
    await post(replica, headers, method="notifications/initialized")
    await replica.journal.flush()
    return headers


async def ping(replica, headers):
    return (await post(replica, headers, id=1, method="ping")).status


def test_a_stale_answer_does_not_drop_what_a_sibling_request_has_taken(make):
    async def scenario():
        one, two = await make("one"), await make("two")
        headers = await begin(one)
        make.replicas.remove(one)
        await kill(one)
        locate, stale, taken = two.directory.locate, asyncio.Event(), asyncio.Event()

        async def late(held, principal):
            two.directory.locate = locate
            place = await locate(held, principal)
            stale.set()
            await taken.wait()
            return place

        two.directory.locate = late
        first = asyncio.create_task(ping(two, headers))
        await stale.wait()
        assert await ping(two, headers) == 200
        taken.set()

        assert await first == 200
        assert await ping(two, headers) == 200

    make.play(scenario)


def test_a_session_that_is_being_released_is_served(make):
    async def scenario():
        one, two = await make("one"), await make("two")
        headers = await begin(one)
        release = one.directory.release

        async def slow(held):
            await asyncio.sleep(0.1)
            await release(held)

        one.directory.release = slow
        one.endpoint.hand_over()

        assert await asyncio.gather(ping(one, headers), ping(two, headers)) == [200, 200]
        assert await ping(one, headers) == 200

    make.play(scenario)


def test_nobody_takes_over_until_all_had_time_to_come_back_to_an_empty_redis(make, redis):
    async def scenario():
        one, two = await make("one"), await make("two")
        headers = await begin(one)
        redis.command("FLUSHALL")
        one.journal.rewrite()
        await one.journal.flush()
        assert await ping(two, headers) == 200
        assert list(one.endpoint.sessions) == [headers["mcp-session-id"]]

        redis.command("DEL", one.directory._replica(one.directory.id))
        two.directory._note_loss()
        with pytest.raises(ProtocolError, match="cluster_unavailable"):
            await ping(two, headers)
        assert await ping(one, headers) == 200

    make.play(scenario)


def test_a_busy_replica_does_not_count_as_one_without_redis(make, monkeypatch):
    from tmkb.cluster import store

    monkeypatch.setattr(store, "_TIMEOUT", 0.05)
    monkeypatch.setattr(store, "_TICK", 0.0025, raising=False)

    async def scenario():
        one = await make("one")

        async def exchange():
            for _ in range(6):
                time.sleep(0.05)
                await asyncio.sleep(0)
            return "done"

        assert await one.directory._call(exchange) == "done"
        assert "cluster" not in one.runtime.conditions

    make.play(scenario)


def test_requests_of_a_moment_are_looked_up_in_one_exchange(make):
    async def scenario():
        one = await make("one")
        headers = await begin(one)
        calls, call = [], one.directory._call
        one.directory._call = lambda send, **options: calls.append(send) or call(send, **options)

        assert await asyncio.gather(*(ping(one, headers) for _ in range(20))) == [200] * 20
        assert len(calls) <= 2

    make.play(scenario)


def test_a_full_redis_is_reported_once_and_without_scripts(make, redis):
    async def scenario():
        one = await make("one")
        headers, lines = await begin(one), []
        one.runtime.log.write = lambda line, **fields: lines.append((line, fields))
        redis.command("CONFIG", "SET", "maxmemory", "1")
        try:
            for _ in range(2):
                with pytest.raises(ProtocolError, match="cluster_unavailable"):
                    await begin(one)
                one.directory.resting_until = 0.0
                await ping(one, headers)  # which Redis can look up
        finally:
            redis.command("CONFIG", "SET", "maxmemory", "0")
        one.directory.resting_until = 0.0
        await one.directory._announce()

        assert [line for line, _ in lines] == ["cluster_refuses", "cluster_found"]
        assert lines[0][1]["reason"] == "its memory is full (maxmemory)"
        assert await ping(one, headers) == 200

    make.play(scenario)


def test_an_encoded_name_of_a_task_reaches_its_owner(make):
    async def scenario():
        one, two = await make("one"), await make("two")
        headers = {"host": "localhost", **{name.lower(): value for name, value in JSON.items()}}
        headers |= {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "slow_compute"}
        arguments = {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}, "_meta": META}
        response = await post(one, headers, id=1, method="tools/call", params=arguments)
        task = json.loads(response.take())["result"]["taskId"]
        await one.journal.flush()
        headers |= {
            "mcp-method": "tasks/get",
            "mcp-name": f"=?base64?{base64.b64encode(task.encode()).decode()}?=",
        }
        response = await post(two, headers, id=2, method="tasks/get", params={"taskId": task, "_meta": META})

        assert json.loads(response.take())["result"]["status"] == "working"

    make.play(scenario)


@pytest.mark.parametrize("url", ["redis://127.0.0.1/0?foo=s3cret", "http://x", "redis://127.0.0.1/0?db=x"])
def test_a_bad_url_is_refused(url):
    from tmkb.cli import replicas
    from tmkb.errors import SpecError
    from tmkb.schema import problems

    with pytest.raises(SpecError) as raised:
        replicas._reach(url)

    [line] = [problems.line(problem) for problem in raised.value.problems]
    assert "This is not the URL of a Redis server: " in line
    assert ".." not in line and "s3cret" not in line
