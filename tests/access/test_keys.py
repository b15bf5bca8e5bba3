"""The keys of an issuer: where they are found, when they are fetched, and what happens when that fails."""

import asyncio
import json
import threading

import pytest

from tests.access.test_tokens import LIMITS
from tests.support.issuer import Issuer, key, public
from tmkb.access import fetching, keys
from tmkb.access.keys import Keys

pytestmark = [pytest.mark.needs("jwt"), pytest.mark.needs("joserfc")]

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BRIEF = {**LIMITS, "keys_seconds": 0.02, "keys_retry_seconds": 0.02}


@pytest.fixture
def issuer():
    with Issuer() as made:
        yield made


def fetch(issuer, jwks=None, **limits):
    return fetching.keys(issuer.name, jwks, {**LIMITS, **limits})


def reason(*arguments, **limits):
    with pytest.raises(fetching.FetchError) as caught:
        fetch(*arguments, **limits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "urls"),
    [
        (
            "https://a.example",
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ],
        ),
        (
            "https://a.example/t/",
            [
                "https://a.example/.well-known/oauth-authorization-server/t",
                "https://a.example/.well-known/openid-configuration/t",
                "https://a.example/t/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_metadata_is_looked_for_in_the_order_of_the_specification(name, urls):
    assert fetching.metadata_urls(name) == urls


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server/t",
        "/.well-known/openid-configuration/t",
        "/t/.well-known/openid-configuration",
    ],
)
def test_keys_are_found_by_metadata(issuer, path):
    issuer.path = "/t"
    metadata = {"issuer": issuer.name, "jwks_uri": issuer.jwks}
    issuer.statuses = {"/.well-known/oauth-authorization-server/t": (404, {}), path: (200, {})}
    issuer.bodies = {path: json.dumps(metadata).encode()}

    assert fetch(issuer) == issuer.keys
    assert issuer.requests[-2:] == [path, "/keys"]


def test_an_address_in_the_access_file_needs_no_metadata(issuer):
    assert fetch(issuer, issuer.jwks) == issuer.keys
    assert issuer.requests == ["/keys"]


PLACE = "/.well-known/oauth-authorization-server"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"issuer": "https://other.example"}, "is the metadata of another issuer"),
        ({"jwks_uri": None}, "has no `jwks_uri` with https://"),
        ({"jwks_uri": "http://internal.example/keys"}, "has no `jwks_uri` with https://"),
        ({"jwks_uri": "file:///etc/passwd"}, "has no `jwks_uri` with https://"),
        ({"jwks_uri": "http://localhost@internal.example/"}, "has no `jwks_uri` with https://"),
        ({"jwks_uri": ["https://a.example"]}, "has no `jwks_uri` with https://"),
    ],
)
def test_metadata_has_to_be_of_the_issuer_and_lead_to_a_safe_address(issuer, metadata, expected):
    issuer.bodies[PLACE] = json.dumps({"issuer": issuer.name, "jwks_uri": issuer.jwks, **metadata}).encode()

    assert expected in reason(issuer)
    assert issuer.requests == [PLACE, "/.well-known/openid-configuration"]


def test_metadata_of_another_issuer_is_passed_over(issuer):
    issuer.bodies[PLACE] = json.dumps(
        {"issuer": "https://other.example", "jwks_uri": "https://other.example/"}
    ).encode()
    issuer.statuses["/.well-known/openid-configuration"] = (200, {})
    issuer.bodies["/.well-known/openid-configuration"] = json.dumps(
        {"issuer": issuer.name, "jwks_uri": issuer.jwks}
    ).encode()

    assert fetch(issuer) == issuer.keys


@pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"keys": {}}', b"<html>"])
def test_documents_of_another_shape_are_refused(issuer, body):
    issuer.bodies["/keys"] = body

    assert reason(issuer, issuer.jwks)


@pytest.mark.parametrize("wrong", [{"key_ops": None}, {"key_ops": "verify"}, {"kty": []}, {"n": 1}, {"crv": {}}])
def test_a_key_of_another_shape_is_left_out(issuer, wrong):
    good = issuer.keys[0]
    issuer.bodies["/keys"] = json.dumps({"keys": [{**good, "kid": "bad", **wrong}, good]}).encode()
    found = [key.id for key in keys._usable(fetch(issuer, issuer.jwks))]

    assert found in ([good["kid"]], ["bad", good["kid"]])  # some members do not belong to this type of key


def test_redirects_are_not_followed(issuer):
    issuer.statuses["/keys"] = (302, {"location": f"{issuer.base}/elsewhere"})

    assert "302" in reason(issuer, issuer.jwks)
    assert issuer.requests == ["/keys"]


def test_large_documents_are_not_read_to_their_end(issuer):
    issuer.bodies["/keys"] = json.dumps({"keys": [], "more": "a" * 300_000}).encode()

    assert "has more than 262144 bytes" in reason(issuer, issuer.jwks)


def test_a_fetch_ends_in_time(issuer):
    issuer.slow.add("/keys")

    assert "timed out" in reason(issuer, issuer.jwks, keys_timeout_seconds=0.1)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\n\r\n",
        CHUNKED,
        CHUNKED + b"1;",
        CHUNKED + b"fffffff\r\n",
    ],
)
def test_a_fetch_ends_in_time_while_bytes_arrive(issuer, start):
    issuer.dripping["/keys"] = start

    assert reason(issuer, issuer.jwks, keys_timeout_seconds=0.2)


# --- The thread that fetches


class Log:
    def __init__(self):
        self.lines = []

    def __call__(self, line, **fields):
        self.lines.append((line, fields))


async def until(condition):
    """Wait until ``condition`` returns a true value."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def ids(keys):
    return [each.id for each in keys.all]


def test_keys_are_fetched_on_a_schedule(issuer):
    async def run():
        keys = Keys(issuer.name, issuer.jwks, {**LIMITS, "keys_seconds": 0.02}, Log())
        keys.start()
        await until(lambda: ids(keys) == ["one"])
        generation = keys.generation
        await until(lambda: len(issuer.requests) > 2)
        assert keys.generation == generation  # nothing has changed
        issuer.keys = public(key("two"))
        await until(lambda: ids(keys) == ["two"])
        assert keys.generation > generation

    asyncio.run(run())


def test_requests_with_unknown_keys_cause_one_fetch_in_a_while(issuer):
    async def run():
        keys = Keys(issuer.name, issuer.jwks, LIMITS, Log())
        await asyncio.gather(*(keys.refresh() for _ in range(50)))  # the first fetch
        assert len(issuer.requests) == 1
        await asyncio.gather(*(keys.refresh() for _ in range(50)))
        assert len(issuer.requests) == 2
        for _ in range(50):
            await keys.refresh()
        assert len(issuer.requests) == 2

    asyncio.run(run())


def test_the_event_loop_goes_on_during_a_fetch(issuer):
    issuer.slow.add("/keys")

    async def run():
        keys = Keys(issuer.name, issuer.jwks, LIMITS, Log())
        waiting = asyncio.create_task(keys.refresh())
        await until(lambda: issuer.requests)
        assert not waiting.done()
        issuer.release.set()
        await waiting
        assert ids(keys) == ["one"]

    asyncio.run(run())


def test_the_last_keys_stay_while_the_issuer_fails(issuer):
    log = Log()

    async def run():
        keys = Keys(issuer.name, issuer.jwks, BRIEF, log)
        keys.start()
        await until(lambda: keys.all)
        issuer.statuses["/keys"] = (500, {})
        await until(lambda: keys.failing)
        assert ids(keys) == ["one"]
        issuer.statuses.clear()
        issuer.bodies["/keys"] = json.dumps({"keys": []}).encode()
        before = len(issuer.requests)
        await until(lambda: len(issuer.requests) > before + 2)
        assert keys.failing and ids(keys) == ["one"]
        issuer.bodies.clear()
        await until(lambda: not keys.failing)

    asyncio.run(run())
    lines = [line for line, _ in log.lines]

    assert lines[:2] == ["keys_fetched", "keys_not_fetched"]
    assert lines[-1] == "keys_fetched"


def test_an_issuer_that_drips_counts_as_down(issuer):
    log = Log()

    async def run():
        keys = Keys(issuer.name, issuer.jwks, {**BRIEF, "keys_seconds": 60, "keys_timeout_seconds": 0.2}, log)
        await keys.refresh()
        issuer.dripping["/keys"] = b"HTTP/1.1 200 OK\r\nX: "
        await keys.refresh()
        assert keys.failing and ids(keys) == ["one"]
        issuer.dripping.clear()
        await until(lambda: not keys.failing)

    asyncio.run(run())
    assert [line for line, _ in log.lines] == ["keys_fetched", "keys_not_fetched", "keys_fetched"]


def test_a_fetch_that_cannot_be_ended_counts_as_failed(issuer, monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(fetching, "keys", lambda *_: released.wait(30) and issuer.keys)

    async def run():
        keys = Keys(issuer.name, issuer.jwks, {**BRIEF, "keys_timeout_seconds": -0.9}, Log())
        await keys.refresh()
        assert keys.failing
        released.set()
        await until(lambda: ids(keys) == ["one"])
        assert not keys.failing

    asyncio.run(run())


def test_an_issuer_that_is_down_at_the_start_is_asked_again(issuer):
    issuer.statuses["/keys"] = (503, {})

    async def run():
        keys = Keys(issuer.name, issuer.jwks, BRIEF, Log())
        await keys.refresh()
        assert keys.failing and not keys.all
        issuer.statuses.clear()
        await until(lambda: ids(keys) == ["one"])

    asyncio.run(run())


def test_a_reloaded_access_file_continues_with_the_keys_of_an_issuer_that_is_unreachable(issuer):
    async def run():
        before, after = (Keys(issuer.name, issuer.jwks, {**LIMITS, "keys_seconds": 0.02}, Log()) for _ in range(2))
        before.start()
        await until(lambda: ids(before) == ["one"])
        issuer.bodies["/keys"] = b"{"
        before.stop()
        after.inherit(before)
        after.start()
        await until(lambda: after.failing)
        assert ids(after) == ["one"]
        elsewhere = Keys("https://other.example", None, LIMITS, Log())
        elsewhere.inherit(before)
        assert not elsewhere.loaded

    asyncio.run(run())


def test_stopped_keys_are_not_fetched(issuer):
    async def run():
        keys = Keys(issuer.name, issuer.jwks, {**LIMITS, "keys_seconds": 0.02}, Log())
        keys.start()
        await until(lambda: keys.loaded)
        keys.stop()
        await asyncio.sleep(0.1)
        count = len(issuer.requests)
        await asyncio.sleep(0.2)
        assert len(issuer.requests) == count

    asyncio.run(run())
