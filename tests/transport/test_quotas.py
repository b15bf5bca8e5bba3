"""Token buckets, accounts of principals, failed attempts of addresses, and the address of a client."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.transport.test_http import JSON, LOCAL, Client
from tmkb.errors import ProtocolError
from tmkb.transport import addresses, quotas
from tmkb.transport.guard import Guard
from tmkb.transport.http import Request
from tmkb.transport.quotas import Accounts, Attempts, Bucket

LIMITS = {
    "principal_rate": 2, "principal_burst": 5, "principal_requests": 2, "principal_byte_rate": 10,
    "principal_byte_burst": 100, "failure_rate": 1, "failure_burst": 3, "busy_seconds": 7,
}  # fmt: skip


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def refusal(function, *arguments):
    with pytest.raises(ProtocolError) as caught:
        function(*arguments)
    return caught.value.error, caught.value.fields


@given(
    st.floats(0.01, 1000),
    st.integers(1, 1000),
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 1000)), max_size=30),
)
def test_no_window_has_more_than_the_burst_and_what_flowed_in(rate, burst, steps):
    now, passed, bucket, taken = 0.0, 0.0, Bucket(burst, 0.0), []
    for step, count in steps:
        now += step
        passed += max(0.0, step)
        if count <= burst and not bucket.wait(count, rate, burst, now):
            bucket.spend(count)
            taken.append((passed, count))

    for first, (start, _) in enumerate(taken):
        for last, (end, _) in enumerate(taken[first:], first + 1):
            within = sum(count for _, count in taken[first:last])
            assert within <= (burst + rate * (end - start)) * (1 + 1e-6)


@given(st.floats(0.01, 1000), st.integers(1, 1000), st.data())
def test_a_client_that_waits_as_long_as_it_is_told_succeeds(rate, burst, data):
    bucket, now = Bucket(burst, 0.0), 0.0
    for count in data.draw(st.lists(st.integers(1, burst), max_size=20)):
        now += bucket.wait(count, rate, burst, now)
        assert bucket.wait(count, rate, burst, now) < 1e-6
        bucket.spend(count)


def test_a_principal_gets_a_burst_and_then_the_rate():
    clock = Clock()
    accounts = Accounts(lambda: LIMITS, clock)
    for _ in range(5):
        accounts.of("ann").add(1)
    assert refusal(accounts.of("ann").add, 1) == ("too_many_requests", {"limit": 2, "retryAfter": 1})
    assert refusal(accounts.of("ann").add, 4) == ("too_many_requests", {"limit": 2, "retryAfter": 2})
    accounts.of("bob").add(5)
    clock.now += 0.5
    accounts.of("ann").add(1)
    assert refusal(accounts.of("ann").add, 1)[0] == "too_many_requests"


def test_a_batch_above_the_burst_is_refused_for_good():
    assert refusal(Accounts(lambda: LIMITS).of("").add, 6) == ("batch_too_large", {"limit": 5})
    assert refusal(Accounts(lambda: LIMITS).of("").add, 1, 101) == ("message_too_large", {"limit": 100})


def test_responses_delay_the_next_request():
    clock = Clock()
    account = Accounts(lambda: LIMITS, clock).of("")
    account.add(1, 100)
    account.add_sent(50)
    assert refusal(account.add, 1, 10) == ("too_many_bytes", {"limit": 10, "retryAfter": 6})
    clock.now += 6
    account.add(1, 10)


def test_a_principal_can_run_a_number_of_requests():
    account = Accounts(lambda: LIMITS).of("")
    account.begin()
    account.begin()
    assert refusal(account.begin) == ("too_many_requests_at_once", {"limit": 2, "retryAfter": 7})
    account.end()
    account.begin()


def test_changed_limits_apply_to_accounts_that_exist():
    limits = {**LIMITS}
    account = Accounts(lambda: limits).of("")
    limits["principal_burst"] = 1
    account.add(1)
    assert refusal(account.add, 1)[0] == "too_many_requests"


def test_an_address_that_fails_too_often_is_refused_before_its_token_is_checked():
    clock = Clock()
    attempts = Attempts(lambda: LIMITS, clock)
    attempts.accept("good")
    for _ in range(3):
        attempts.check("a", "guess")
        attempts.fail("a", "guess")
    assert refusal(attempts.check, "a", "another") == ("too_many_failures", {"retryAfter": 1})
    attempts.check("a", "good")  # behind the same proxy
    attempts.check("a", "")
    attempts.check("b", "guess")
    clock.now += 1
    attempts.check("a", "another")


def test_an_accepted_token_that_is_not_valid_any_more_counts_like_others():
    attempts = Attempts(lambda: LIMITS, Clock())
    attempts.accept("old")
    for _ in range(3):
        attempts.fail("a", "old")
    assert refusal(attempts.check, "a", "old")[0] == "too_many_failures"


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(quotas, "_MAX_STORED", 10)
    accounts, attempts = Accounts(lambda: LIMITS), Attempts(lambda: LIMITS)
    for number in range(100):
        accounts.of(str(number))
        attempts.fail(str(number), "x")
        attempts.accept(str(number))
    assert [len(each) for each in (accounts.stored, attempts.failures, attempts.accepted)] == [10, 10, 10]
    assert "99" in accounts.stored


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "expected"),
    [
        ("192.0.2.1", "", [], "192.0.2.1"),
        ("192.0.2.1", "198.51.100.1", [], "192.0.2.1"),
        ("192.0.2.1", "198.51.100.1", ["203.0.113.0/24"], "192.0.2.1"),
        ("10.0.0.1", "198.51.100.1", ["10.0.0.0/8"], "198.51.100.1"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2", ["10.0.0.0/8"], "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", ["10.0.0.0/8"], "10.0.0.3"),
        ("10.0.0.1", "nonsense", ["10.0.0.0/8"], ""),
        ("10.0.0.1", "", ["10.0.0.0/8"], "10.0.0.1"),
        ("::ffff:10.0.0.1", "2001:db8:0:1:2:3:4:5", ["10.0.0.0/8"], "2001:db8:0:1::/64"),
        ("2001:db8:0:1::9", "", [], "2001:db8:0:1::/64"),
        ("", "198.51.100.1", ["10.0.0.0/8"], ""),
    ],
)
def test_the_address_of_a_client_is_behind_trusted_proxies_only(peer, forwarded, proxies, expected):
    assert addresses.client(peer, forwarded, [addresses.network(each) for each in proxies]) == expected


def ping(id):
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def test_a_batch_counts_each_message(runtimes, quiet):
    client = Client(runtimes, quiet, principal_rate=1, principal_burst=6)
    client.shake("2025-03-26")

    def send(count):
        body = json.dumps([ping(id) for id in range(count)]).encode()
        return client.call(headers={**JSON, **client.session}, body=body)

    assert len(json.loads(send(5).take())) == 5
    refused = send(4)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert json.loads(refused.take())["error"] == {
        "code": -32600,
        "message": "Too many requests. Limit: 1 per second on average. Try again in 1 s",
        "data": {"limit": 1, "retryAfter": 1},
    }
    assert send(8).status == 413


def test_tokens_that_are_guessed_are_refused_without_a_check(runtimes, quiet):
    client = Client(runtimes, quiet, failure_burst=2, failure_rate=0.001)
    client.endpoint.guard = Guard(tokens=["0" * 64])

    def guess(token):
        headers = {**JSON, "authorization": f"Bearer {token}"}
        return client.endpoint.handle(Request("POST", "/mcp", headers, b"{}", "192.0.2.1"))

    assert [guess(number).status for number in range(4)] == [401, 401, 429, 429]
    assert client.call().status == 401  # without a token, and from elsewhere


def test_probes_need_no_token_and_show_conditions(runtimes, quiet):
    from tmkb.transport.probes import Condition

    client = Client(runtimes, quiet)
    client.endpoint.guard = Guard(tokens=["0" * 64])
    conditions = client.endpoint.runtime.conditions

    def probe(path="/readyz", verb="GET"):
        answer = client.call(verb, {"host": "10.1.2.3:8321"}, path=path)
        return answer.status, answer.take().decode()

    assert probe() == (200, '{"ready":true,"conditions":{}}\n')
    conditions["guests"] = Condition(ProtocolError("too_many_sessions", limit=3))
    assert probe() == (200, '{"ready":true,"conditions":{"guests":"Too many sessions at once. Limit: 3"}}\n')
    conditions["draining"] = Condition(ProtocolError("shut_down"), blocks=True)
    status, body = probe()
    assert (status, json.loads(body)["ready"]) == (503, False)
    assert [probe(path) for path in ("/livez", "/healthz")] == [(200, "ok\n")] * 2
    assert probe(verb="HEAD") == probe()
    assert probe(verb="DELETE")[0] == 404
    assert client.call("GET", LOCAL).status == 401
