"""Whatever comes in: no crash, exactly one answer for each request, and nothing changed by what is refused."""

import json
import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ToolError
from tmkb.protocol import inbound, messages
from tmkb.protocol import requests as lives
from tmkb.protocol.effects import Drop, Invoke, LogException, Send
from tmkb.protocol.requests import Batch
from tmkb.providers.operation import Result
from tmkb.server.runtime import Runtime

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
METHODS = ["initialize", "notifications/initialized", "ping", "tools/list", "tools/call", "no/such"]


def opened(runtime, revision="2025-03-26", *, finished=True):
    connection = runtime.connect()
    runtime.handle(connection, json.dumps({**INITIALIZE, "params": {"protocolVersion": revision}}).encode())
    if finished:
        runtime.handle(connection, json.dumps(INITIALIZED).encode())
    return connection


@pytest.fixture
def states(runtime):
    """A connection in each state."""
    return {
        "not_initialized": runtime.connect(),
        "initializing": opened(runtime, finished=False),
        "initialized": opened(runtime),
    }


REFUSED = [
    b"{",
    b"17",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tmkb_query"}}',
    b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-03-26"}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}]',
]


@pytest.mark.parametrize("state", ["not_initialized", "initializing", "initialized"])
@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line.decode()[:60])
def test_refused_message_changes_no_state(runtime, states, state, line):
    connection = states[state]
    before = connection.state, connection.negotiated

    runtime.handle(connection, line)

    assert (connection.state, connection.negotiated) == before
    assert connection.state == state


def test_the_end_of_input_leads_to_shutdown(runtime):
    connection = opened(runtime)
    connection.end()

    assert connection.state == "shutdown"


def calls(context, *ids):
    """Queries about ``context`` with these ids."""
    params = {"name": "tmkb_query", "arguments": {"context": context}}
    return [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in ids]


def test_a_batch_waits_for_all_its_operations(runtime):
    connection = opened(runtime)
    batch = [*calls("a batch that waits", 1, 2), {"jsonrpc": "2.0", "id": 3, "method": "ping"}]
    effects = inbound.receive(connection, json.dumps(batch).encode())
    first, second = [effect.exchange for effect in effects if isinstance(effect, Invoke)]
    for invoke in (first, second):
        invoke.definition = {**invoke.definition, "log": {"level": "info", "message": "Done"}}

    assert not any(isinstance(effect, Send) for effect in effects)
    assert not any(isinstance(effect, Send) for effect in lives.complete(second, "two"))
    (sent,) = [json.loads(e.message) for e in lives.complete(first, "one") if isinstance(e, Send)]
    assert [response["id"] for response in sent] == [1, 2, 3]
    assert sent[0]["result"]["content"] == [{"type": "text", "text": "one"}]


def called(connection, *ids):
    """The exchanges of calls with these ids, in one batch if there are several."""
    batch = calls("an exchange that ends early", *ids)
    effects = inbound.receive(connection, json.dumps(batch if len(batch) > 1 else batch[0]).encode())
    return [effect.exchange for effect in effects if isinstance(effect, Invoke)]


def test_nobody_waits_for_a_cancelled_request(runtime):
    connection = opened(runtime)
    (alone,) = called(connection, 1)

    assert lives.cancel(alone) == [Drop(connection, 1)]
    assert not connection.in_flight

    first, second = called(connection, 2, 3)

    assert lives.cancel(second) == []
    assert connection.in_flight == {2: first, 3: None}
    assert lives.cancel(first) == [Drop(connection, 2)]
    assert not connection.in_flight


def test_a_request_that_breaks_down_ends_with_an_error(runtime):
    connection, error = opened(runtime), RuntimeError("broken")
    (exchange,) = called(connection, 4)
    logged, _, sent = lives.fail(exchange, error)

    assert (logged.error, logged.request_id) == (error, 4)
    assert logged.ref.rpartition("-")[2].isdigit()
    assert json.loads(sent.message) == {
        "jsonrpc": "2.0",
        "id": 4,
        "error": {"code": -32603, "message": "Internal error"},
    }
    assert (exchange.lifecycle.state, connection.in_flight) == ("finished", {})


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_outcomes_become_results(runtime, revision):
    """An object is not structured content, because the tool has no output schema."""
    connection = opened(runtime, revision)
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tmkb_query","arguments":{"context":"an outcome"}}}'

    def result(outcome):
        (exchange,) = [e.exchange for e in inbound.receive(connection, line) if isinstance(e, Invoke)]
        exchange.cache_key = None
        exchange.definition = {**exchange.definition, "log": {"level": "info", "message": "{tool}", "fields": ["tool"]}}
        return next(json.loads(e.message)["result"] for e in lives.complete(exchange, outcome) if isinstance(e, Send))

    assert result({"a": "é"}) == {"content": [{"type": "text", "text": '{"a":"é"}'}], "isError": False}
    assert result(Result([], is_error=True)) == {"content": [], "isError": True}
    assert result(ToolError("query_failed"))["content"][0]["text"] == "Query failed. The error was logged."


def test_a_line_that_is_too_long_is_refused(runtime):
    connection = opened(runtime)
    limit = runtime.spec["server"]["limits"]["message_bytes"]
    logged, sent = inbound.receive_too_large(connection)

    assert logged.fields["sentence"] == f"Message too large. Limit: {limit} bytes"
    assert (sent.connection, json.loads(sent.message)["error"]["data"]) == (connection, {"limit": limit})


def test_a_batch_that_is_too_long_is_refused_whole(runtime):
    connection = opened(runtime)
    limit = runtime.spec["server"]["limits"]["batch_messages"]
    (answer,) = runtime.handle(connection, json.dumps([0] * (limit + 1)).encode())

    assert json.loads(answer.message)["error"] == {
        "code": -32600,
        "message": f"Batch too large. Limit: {limit} messages",
        "data": {"limit": limit},
    }


@pytest.fixture
def batches(found, quiet):
    """Answer a batch of so many requests, with so many bytes for the answer: its length, its errors, and the most memory
    that was used meanwhile."""

    def answer(request, times, limit):
        server = found.spec["server"]
        spec = {**found.spec, "server": {**server, "limits": {**server["limits"], "batch_answer_bytes": limit}}}
        runtime = Runtime(spec, found.provider, quiet(spec))
        connection = opened(runtime, "2025-03-26")
        runtime.handle(connection, json.dumps(request(-1)).encode())
        line = json.dumps([request(number) for number in range(times)]).encode()
        tracemalloc.start()
        (sent,) = runtime.handle(connection, line)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not connection.running and not connection.in_flight
        responses = json.loads(sent.message)
        assert [response["id"] for response in responses] == list(range(times))
        return len(sent.message), [each["error"] for each in responses if "error" in each], peak

    return answer


def listing(id):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/list"}


def calling(id):
    """Each asks something else, so that no answer of before is used again."""
    arguments = {"context": f"background job processing {id + 1000}", "verbosity": "human"}
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": "tmkb_query", "arguments": arguments},
    }


@pytest.mark.parametrize("request_", [listing, calling])
def test_the_answer_to_a_batch_is_bounded(batches, request_):
    one, *_ = batches(request_, 1, 10**9)
    limit = 20 * one
    whole, errors, _ = batches(request_, 200, limit)

    assert {error["message"] for error in errors} == {
        f"Batch answer too large, request not carried out. Limit: {limit} bytes"
    }
    assert {error["data"]["limit"] for error in errors} == {limit}
    assert 175 <= len(errors) <= 180
    assert whole <= limit + one + sum(len(json.dumps(error)) + 50 for error in errors)


def test_the_memory_for_a_batch_follows_the_limit_and_not_the_answers(batches):
    one, *_ = batches(calling, 1, 10**9)
    few, twice, much, unlimited = (
        batches(calling, times, limit)[2]
        for times, limit in ((100, 50 * one), (200, 50 * one), (400, 50 * one), (400, 10**9))
    )

    assert twice < 1.5 * few
    assert much < 2 * few
    assert unlimited > 3 * few


def test_adding_a_response_leaves_none_pending():
    batch = Batch(limit=100)
    batch.add(b"first")

    assert (batch.responses, batch.size, batch.pending) == ([b"first"], 5, set())


ids = (
    st.none()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.lists(st.integers())
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2]),
        "id": ids,
        "method": st.sampled_from(METHODS) | st.integers(),
        "params": st.dictionaries(
            st.sampled_from(["name", "arguments", "protocolVersion", "cursor"]),
            st.text()
            | st.sampled_from(["tmkb_query", "2025-03-26", "2024-11-05"])
            | st.dictionaries(st.sampled_from(["context", "language", "verbosity", "x"]), st.text() | st.integers()),
        )
        | st.lists(st.integers()),
        "result": st.integers(),
    },
)


def expected_answers(value):
    """How many messages a single JSON value is answered with."""
    if isinstance(value, dict) and "method" not in value and "result" in value:
        return 0
    if (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and "id" not in value
        and isinstance(value.get("method"), str)
    ):
        return 0
    return 1


@given(st.lists(requests, max_size=6))
def test_every_request_gets_exactly_one_answer_with_its_id(runtime, values):
    connection = runtime.connect()
    for value in values:
        answers = [json.loads(answer.message) for answer in runtime.handle(connection, json.dumps(value).encode())]

        assert len(answers) == expected_answers(value)
        for answer in answers:
            id_ = messages.readable_id(value)
            assert answer.get("id") == id_ and type(answer.get("id")) is type(id_)
            assert ("result" in answer) != ("error" in answer)
            assert list(answer) == [key for key in ("jsonrpc", "id", "result", "error") if key in answer]


@given(st.lists(requests, min_size=1, max_size=6))
def test_a_batch_is_answered_like_its_elements(runtime, values):
    answers = [json.loads(answer.message) for answer in runtime.handle(opened(runtime), json.dumps(values).encode())]
    expected = sum(expected_answers(value) for value in values)

    assert [len(answer) for answer in answers] == ([expected] if expected else [])


@given(st.binary(max_size=300))
def test_any_bytes_get_at_most_one_answer(runtime, line):
    answers = runtime.handle(opened(runtime), line)

    assert len(answers) <= 1
    assert all(json.loads(answer.message)["jsonrpc"] == "2.0" for answer in answers)


def test_a_fault_of_ours_is_an_internal_error(runtime, monkeypatch):
    connection = opened(runtime)
    monkeypatch.setitem(runtime.spec["tools"]["tmkb_query"], "input", {"$ref": "nowhere"})
    (answer,) = runtime.handle(
        connection, b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"tmkb_query","arguments":{}}}'
    )

    assert json.loads(answer.message) == {
        "jsonrpc": "2.0",
        "id": 9,
        "error": {"code": -32603, "message": "Internal error"},
    }


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
    ],
    ids=["notification", "response"],
)
def test_an_internal_error_is_sent_only_for_requests(runtime, monkeypatch, line):
    def broken(*_):
        raise RuntimeError("broken")

    connection = opened(runtime)
    monkeypatch.setitem(lives._handlers, "cancel", SimpleNamespace(begin=broken))
    monkeypatch.setattr(inbound, "_response", broken)
    effects = inbound.receive(connection, line)

    assert [type(effect) for effect in effects] == [LogException]
    assert runtime.handle(connection, line) == []


@pytest.mark.parametrize("params", ["[1]", "null", "5"])
def test_a_notification_whose_params_are_no_object_is_ignored(runtime, params):
    line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'

    assert inbound.receive(opened(runtime), line.encode()) == []


def test_a_fault_of_ours_with_what_is_not_json_is_only_logged(runtime):
    error = RuntimeError("broken")
    (logged,) = inbound.fail(opened(runtime), b"{", error)

    assert isinstance(logged, LogException)
    assert (logged.error, logged.request_id) == (error, None)


def test_whatever_breaks_requests_are_answered_and_nothing_else(runtime, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    connection = opened(runtime)
    monkeypatch.setattr(inbound, "_message", broken)
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}

    def answers(value):
        return [json.loads(sent.message) for sent in runtime.handle(connection, json.dumps(value).encode())]

    failed = {"jsonrpc": "2.0", "id": 9, "error": {"code": -32603, "message": "Internal error"}}
    assert answers(ping) == [failed]
    assert answers([ping, INITIALIZED]) == [[failed]]
    assert answers(INITIALIZED) == answers({"jsonrpc": "2.0", "id": 9, "result": {}}) == []
    assert [sent.connection for sent in runtime.handle(connection, json.dumps(ping).encode())] == [connection]
