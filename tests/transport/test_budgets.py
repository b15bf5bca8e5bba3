"""Limits per principal: numbers of objects, and bytes of memory as a ratio to the limit."""

import copy
import gc
import json
import sys
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transport.test_http import JSON, events, named
from tests.transport.test_principals import ABLE, DECLARED, began, peers, result
from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget, Entry, footprint
from tmkb.server.runtime import Runtime
from tmkb.transport.http import Request

MEBIBYTE = 1 << 20
SMALL = {"session_bytes": MEBIBYTE // 2, "principal_bytes": MEBIBYTE, "stream_bytes": MEBIBYTE // 8}
BIG = "x" * (MEBIBYTE // 10)


def error(answer):
    return json.loads(answer.take())["error"]["message"]


# Numbers


def test_a_new_session_only_ends_sessions_of_its_principal(runtimes, quiet):
    many, few = peers(runtimes, quiet, sessions=4, principal_sessions=3)
    few.begin()
    sessions = [many.begin() for _ in range(9)]
    alive = []
    for many.session in sessions:
        alive.append(many.send("ping", 1).status)

    assert few.send("ping", 1).status == 200
    assert alive == [404] * 6 + [200] * 3


def test_a_principal_gets_no_session_while_others_use_all_of_them(runtimes, quiet):
    first, second, third = peers(runtimes, quiet, tokens=("one", "two", "three"), sessions=2)
    first.begin()
    second.begin()
    refused = third.send("initialize", 0, protocolVersion="2025-11-25", capabilities=DECLARED)

    assert (refused.status, "mcp-session-id" in refused.headers) == (503, False)
    assert error(refused) == "Too many sessions at once. Limit: 2"
    assert [each.send("ping", 1).status for each in (first, second)] == [200, 200]
    assert len(third.endpoint.runtime.connections) == 2
    first.begin()
    assert second.send("ping", 2).status == 200  # after the first principal has ended its session


def test_a_new_task_only_drops_tasks_of_its_principal(runtimes, quiet):
    many, few = peers(runtimes, quiet, tasks=4, principal_tasks=3)
    over = began("slow_compute", seconds=0)(few)
    few.work()
    running = [began("slow_compute", seconds=60)(many) for _ in range(3)]
    refused = many.tool("slow_compute", arguments={"seconds": 60})
    began("slow_compute", seconds=60)(few)  # replaces a task of the same principal

    assert error(refused) == "Too many tasks at once. Limit: 3"
    assert all(result(many.task("get", task))["status"] == "working" for task in running)
    assert error(few.task("get", over)) == f"Unknown task: {over}"


@pytest.mark.parametrize("jump", [-86_400, 86_400])
def test_a_task_expires_by_the_time_that_has_passed_and_not_by_the_clock_of_the_system(runtimes, quiet, jump):
    (peer,) = peers(runtimes, quiet, tokens=("one",))
    task = began("slow_compute", seconds=0)(peer)
    peer.work()
    tasks = peer.endpoint.runtime.tasks
    tasks.clock = lambda: time.time() + jump
    assert result(peer.task("get", task))["status"] == "completed"

    tasks.timer = lambda: time.monotonic() + tasks.limits["task_seconds"] + 1
    assert error(peer.task("get", task)) == f"Unknown task: {task}"


def test_streams_are_limited_per_principal(runtimes, quiet):
    many, few = peers(runtimes, quiet, streams=4, principal_streams=2)

    def listen(peer, id):
        return peer.alone("subscriptions/listen", id, notifications={"toolsListChanged": True}).status

    assert [listen(many, id) for id in range(4)] == [200, 200, 503, 503]
    assert [listen(few, id) for id in range(3)] == [200, 200, 503]


# Each action stores one object of about a tenth of a mebibyte. Add an action for each new kind of stored object.


def disconnected(peer, number):
    """Call a tool and disconnect before the response."""
    arguments = {"seconds": 0.001, "label": BIG}
    answer = peer.send("tools/call", number, name="slow_compute", arguments=arguments)
    peer.endpoint.on_idle(answer)
    peer.endpoint.on_disconnect(answer)
    peer.work()


def disconnected_in_new_sessions(peer, number):
    peer.begin()
    disconnected(peer, number)


def capabilities(peer, number):
    experimental = {"experimental": {f"{number}-{key}": {} for key in range(400)}, "x": {"y": BIG}}
    peer.send("initialize", 0, protocolVersion="2025-11-25", capabilities=experimental)


def subscriptions(peer, number):
    for part in range(5):
        peer.send("resources/subscribe", 1, uri=f"test://template/{BIG[:2000]}{number}-{part}/data")
        peer.send("resources/subscribe", 1, uri=f"test://template/{BIG[:10000]}{number}-{part}/data")


def subscriptions_in_new_sessions(peer, number):
    peer.begin()
    subscriptions(peer, number)


def listening(peer, number):
    uris = [f"{part:02000d}" for part in range(50)]
    notifications = {"resourceSubscriptions": uris}
    peer.answers.append(peer.alone("subscriptions/listen", f"{number}{BIG}", notifications=notifications))


def running(peer, number):
    peer.answers.append(
        peer.send("tools/call", number, name="test_slow", arguments={"x": BIG}, _meta={"y": {"z": BIG}})
    )


def running_alone(peer, number):
    answer = peer.alone("tools/call", number, named("test_slow"), name="test_slow", _meta={**ABLE, "x.org/y": BIG})
    peer.answers.append(answer)


def task_params(peer, number):
    peer.tool("slow_compute", number, {"seconds": 60, "label": BIG})


def task_results(peer, number):
    peer.tool("slow_compute", number, {"seconds": 0, "label": BIG})
    peer.work()


def notifications(peer, number):
    """Cause many small events without a general stream."""
    for id in range(number * 20, number * 20 + 20):
        peer.send("tools/call", id + 1, name="test_trigger_tool_change")
    peer.work()


ROWS = [
    disconnected, disconnected_in_new_sessions, capabilities, subscriptions, subscriptions_in_new_sessions, listening,
    running, running_alone, task_params, task_results, notifications,
]  # fmt: skip


def grown(peer, act, numbers):
    """Return the bytes of memory that ``act`` adds to the server, for a client that reads its responses."""
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for number in numbers:
        act(peer, number)
        peer.read()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    return after - before


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize("tokens", [(None,), ("one",)], ids=["anonymous", "authenticated"])
@pytest.mark.parametrize("row", ROWS)
def test_memory_stays_within_the_budget_of_a_principal(runtimes, quiet, traced, row, tokens):
    (peer,) = peers(runtimes, quiet, tokens, **SMALL)
    peer.answers = []  # keeps the responses open
    peer.begin()
    row(peer, 1)
    most = grown(peer, row, range(2, 27))

    assert most < 1.5 * SMALL["principal_bytes"]
    assert peer.endpoint.runtime.budget(next(iter(peer.endpoint.runtime.budgets))).limit == SMALL["principal_bytes"]
    cleaned_up(peer)


def cleaned_up(peer):
    """End everything, and check that no bytes are counted."""
    runtime = peer.endpoint.runtime
    for answer in peer.answers:
        peer.endpoint.on_disconnect(answer)
    for session in [*peer.endpoint.sessions.values()]:
        peer.session = {"mcp-session-id": session.id}
        assert peer.call("DELETE", {"host": "localhost", **peer.session}).status == 204
    for task in [*(runtime.tasks.by_id if runtime.tasks else ())]:
        peer.task("cancel", task)
        runtime.tasks.limits = {**runtime.tasks.limits, "task_seconds": -1}
    peer.task("get", "x")
    peer.read()
    assert (runtime.connections, peer.endpoint.streams) == (set(), {})
    assert [(budget.reserved, budget.entry_bytes, len(budget.entries)) for budget in runtime.budgets.values()] == [
        (0, 0, 0)
    ]


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS)
def test_requests_without_a_token_leave_nothing_in_memory(runtimes, quiet, traced, row):
    (peer,) = peers(runtimes, quiet, **{"tokens": ("one",)}, **SMALL)
    peer.answers = []
    peer.begin()
    stranger = type(peer)(peer.endpoint, None)
    stranger.answers, stranger.session, stranger.begin = [], peer.session, lambda: None
    row(stranger, 1)
    stranger.answers.clear()
    peer.read()
    held = peer.endpoint.runtime.budget(*peer.endpoint.runtime.budgets).reserved

    assert grown(stranger, lambda *args: (row(*args), stranger.answers.clear()), range(2, 22)) < MEBIBYTE / 20
    assert (len(peer.endpoint.sessions), len(peer.endpoint.runtime.budgets)) == (1, 1)
    assert peer.endpoint.runtime.budget(*peer.endpoint.runtime.budgets).reserved == held


def test_a_principal_over_its_budget_does_not_affect_another(runtimes, quiet):
    many, few = peers(runtimes, quiet, **SMALL)
    many.answers = []
    many.begin()
    for number in range(1, 12):
        running(many, number)
    few.begin()
    answer = few.send("tools/call", 1, name="slow_compute", arguments={"seconds": 0.001, "label": BIG})
    few.work()

    assert (
        error(many.answers[-1]) == f"The client's requests take too much memory. Limit: {SMALL['session_bytes']} bytes"
    )
    assert result(answer)["content"][0]["text"].endswith("done")


def test_idle_sessions_do_not_use_up_the_budget(runtimes, quiet):
    hoarder, modest = peers(runtimes, quiet, tokens=("one", "one"), **SMALL)
    for number in range(9):
        hoarder.session = {}
        capabilities(hoarder, number)
        assert (
            hoarder.send("initialize", 0, protocolVersion="2025-11-25", capabilities={"x": "y" * 400000}).status == 200
        )
    modest.begin()
    answer = modest.send("tools/call", 1, name="slow_compute", arguments={"seconds": 0.001, "label": BIG})
    modest.work()

    assert result(answer)["content"][0]["text"].endswith("done")


# Events that a client comes back for


def test_resuming_a_stream_whose_response_was_too_large_returns_an_error(runtimes, quiet):
    (peer,) = peers(runtimes, quiet, tokens=(None,), stream_bytes=1000)
    peer.begin()
    arguments = {"seconds": 0.001, "label": "x" * 2000}
    disconnected_call, call = (peer.send("tools/call", id, name="slow_compute", arguments=arguments) for id in (1, 2))
    for answer in (disconnected_call, call):
        peer.endpoint.on_idle(answer)
        answer.take()
    peer.endpoint.on_disconnect(disconnected_call)
    peer.work()
    ((_, whole),) = events(call)
    ((_, error),) = events(peer.listen(**{"last-event-id": "2-1"}))

    assert whole["result"]["content"][0]["text"] == "x" * 2000 + ": done"
    assert (error["id"], error["error"]["code"]) == (1, -32603)
    assert error["error"]["message"].startswith("The response of ")


def test_resuming_a_stream_whose_batch_was_too_large_returns_an_error_for_each_request(runtimes, quiet):
    (peer,) = peers(runtimes, quiet, tokens=(None,), stream_bytes=1000)
    peer.shake("2025-03-26")
    params = {"name": "slow_compute", "arguments": {"seconds": 0.001, "label": "x" * 2000}}
    lines = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in (1, 2)]
    answer = peer.call(headers={**peer_headers(peer)}, body=json.dumps(lines).encode())
    peer.endpoint.on_idle(answer)
    peer.endpoint.on_disconnect(answer)
    peer.work()
    ((_, errors),) = events(peer.listen(**{"last-event-id": "2-0"}))

    assert [(each["id"], each["error"]["code"]) for each in errors] == [(1, -32603), (2, -32603)]


def peer_headers(peer):
    return {"host": "localhost", "content-type": "application/json", **peer.session}


def test_a_stream_whose_response_was_dropped_cannot_be_resumed(runtimes, quiet):
    (peer,) = peers(runtimes, quiet, tokens=(None,), session_bytes=4000, principal_bytes=4000)
    peer.shake()
    for id in range(1, 20):
        peer.send("tools/call", id, name="test_reconnection")
        while peer.endpoint.runtime.jobs:
            peer.endpoint.runtime.jobs[0].steps.resume_at = 0
            peer.endpoint.work()

    assert error(peer.listen(**{"last-event-id": "2-1"})) == "There is no stream to go on with after the event 2-1"
    assert len(events(peer.listen(**{"last-event-id": "20-1"}))) == 1


@pytest.mark.parametrize(
    "event",
    ["9" * 5000 + "-1", "2-" + "9" * 5000, "9" * 5000, "", "-", "2", "2-", "-1", "+2-1", "2_0-1", "²-1", "2-1-1"],
)
def test_an_invalid_event_id_is_rejected(runtimes, quiet, event):
    (peer,) = peers(runtimes, quiet, tokens=(None,))
    peer.begin()
    refused = peer.listen(**{"last-event-id": event})

    assert refused.status == 404
    assert len(error(refused)) < 200


# Subscriptions, on every transport


def over_http(runtimes, quiet, **limits):
    (peer,) = peers(runtimes, quiet, tokens=(None,), **limits)
    peer.begin()
    return lambda method, id=1, **params: json.loads(peer.send(method, id, **params).take())


def over_stdio(runtimes, quiet, **limits):
    server = runtimes("everything")
    spec = {**server.spec, "server": copy.deepcopy(server.spec["server"])}
    spec["server"]["limits"].update(limits)
    runtime = Runtime(spec, server.provider, quiet(spec))
    connection = runtime.connect()

    def ask(method, id=1, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return json.loads(runtime.handle(connection, line.encode())[-1].message)

    ask("initialize", protocolVersion="2025-11-25", capabilities={})
    runtime.handle(connection, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return ask


@pytest.mark.parametrize("transport", [over_http, over_stdio])
def test_subscriptions_are_limited(runtimes, quiet, transport):
    ask = transport(runtimes, quiet, subscriptions=3, uri_bytes=40)

    def subscribe(name, method="resources/subscribe"):
        answer = ask(method, uri=f"test://template/{name}/data")
        return answer.get("error", {}).get("message")

    assert subscribe("x" * 40) == "The URI of a subscription is too long. Limit: 40 bytes"
    assert [subscribe(name) for name in "aabbc"] == [None] * 5
    assert subscribe("d") == "Too many subscriptions. Limit: 3"
    assert subscribe("a", "resources/unsubscribe") is None
    assert subscribe("a", "resources/unsubscribe") is None
    assert [subscribe(name) for name in "de"] == [None, "Too many subscriptions. Limit: 3"]


def test_subscribed_uris_are_limited_per_connection(runtimes, quiet):
    ask = over_stdio(runtimes, quiet, subscriptions=3, uri_bytes=40)

    def listen(id, *uris):
        params = {"notifications": {"resourceSubscriptions": [*uris]}, "_meta": {**META_ABLE}}
        return ask("subscriptions/listen", id, **params).get("error", {}).get("message")

    assert listen("a", "x" * 41) == "The URI of a subscription is too long. Limit: 40 bytes"
    assert [listen("b", "1", "2"), listen("c", "3")] == [None, None]
    assert listen("d", "4") == "Too many subscriptions. Limit: 3"


META_ABLE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", **ABLE}


# The mechanism


def test_footprint_is_the_memory_of_a_value():
    tracemalloc.start()
    text = json.dumps([{"a": [{}] * 5, "b": ["x" * 50, 1.5, None]} for _ in range(2000)])
    before, _ = tracemalloc.get_traced_memory()
    value = json.loads(text)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.8 < footprint(value) / (after - before) < 1.5
    assert footprint("x") == sys.getsizeof("x")


def test_a_limit_can_be_used_up_and_is_not_exceeded():
    evicted = []
    parent = Budget(10)
    budget = Budget(15, parent)
    for name in "ab":
        budget.add(Entry(5, lambda name=name: evicted.append(name)))

    assert (budget.capacity, evicted) == (10, [])
    assert (budget.fits(10), budget.fits(11)) == (True, False)

    budget.reserve(5)
    assert evicted == ["a"]
    budget.close()
    budget.reserve(5)
    assert (parent.reserved, parent.entry_bytes, evicted) == (0, 0, ["a"])
    budget.reserve(5)
    assert evicted == ["a", "b"]
    with pytest.raises(ProtocolError) as caught:
        budget.reserve(1)
    assert (caught.value.error, caught.value.fields) == ("too_much_held", {"limit": 15})


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["hold", "release", "keep", "discard", "close"]), st.integers(0, 1), st.integers(0, 70)
        )
    )
)
def test_counted_bytes_never_exceed_a_limit(actions):
    parent = Budget(100)
    budgets = [Budget(60, parent), Budget(90, parent)]
    held, kept = ([[], []] for _ in range(2))
    for action, which, size in actions:
        budget, mine = budgets[which], kept[which]
        if action == "hold":
            fits = sum(held[which]) + size <= budget.limit and (
                budget.parent is None or sum(map(sum, held)) + size <= parent.limit
            )
            try:
                budget.reserve(size)
                held[which].append(size)
                assert fits
            except ProtocolError:
                assert not fits
        elif action == "release" and held[which]:
            budget.release(held[which].pop())
        elif action == "keep":
            entry = Entry(size, lambda: None)
            entry.on_evict = lambda entry=entry, mine=mine: mine.remove(entry)
            mine.append(entry)
            budget.add(entry)
        elif action == "discard" and mine:
            budget.remove(mine.pop())
        elif action == "close":
            budget.close()
            budgets[which], held[which], kept[which] = Budget(60 + 30 * which, parent), [], []
        assert parent.reserved == sum(map(sum, held))
        assert parent.entry_bytes == sum(entry.size for each in kept for entry in each)
        assert parent.reserved + parent.entry_bytes <= parent.limit
        for each in budgets:
            assert each.reserved + each.entry_bytes <= each.limit


def echo(peer, number, size):
    return peer.tool("greet", number, {"name": "x" * size})


def test_unread_responses_count_against_the_budget(runtimes, quiet):
    many, few = peers(runtimes, quiet, **SMALL)
    statuses = [echo(many, number, MEBIBYTE // 4).status for number in range(6)]

    assert statuses == [200] * 3 + [503] * 3
    assert error(many.unread[-1]) == (
        f"The client's requests and unread responses take too much memory. Limit: {MEBIBYTE} bytes"
    )
    assert echo(few, 1, MEBIBYTE // 4).status == 200
    many.read()
    assert echo(many, 7, MEBIBYTE // 4).status == 200
    caller = many.endpoint.admit(Request("POST", "/mcp", {**JSON, **many.token}, b""))
    assert many.endpoint.runtime.budget(caller.principal).reserved
    many.read()
    few.read()
    assert [budget.reserved for budget in many.endpoint.runtime.budgets.values()] == [0, 0]
