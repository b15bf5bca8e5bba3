"""What observers are told: every request once, with names of the server's own files only."""

import copy
import json

import pytest

from tests.conftest import loaded
from tests.transport.test_http import Client as Http
from tests.transport.test_http import named
from tmkb.insight.observer import OTHER, Observer, Receiver
from tmkb.server.runtime import Runtime
from tmkb.transport.guard import Guard
from tmkb.transport.http import Endpoint

HANDSHAKE = [
    {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "notifications/initialized"},
]


class Recorder(Receiver):
    """Keeps what it is told."""

    def __init__(self):
        self.requests, self.refusals, self.lines, self.bytes = [], [], [], [0, 0]

    def completed(self, completion):
        assert completion.seconds >= 0
        self.requests.append(completion)

    def refused(self, error):
        self.refusals.append(error)

    def received(self, size):
        self.bytes[0] += size

    def sent(self, size):
        self.bytes[1] += size

    def logged(self, line):
        self.lines.append(line)

    def told(self):
        """Method, tool, prompt, outcome and error of each request."""
        return [(each.method, each.tool, each.prompt, each.outcome, each.error) for each in self.requests]


class Observed:
    """A runtime with an observer, and a client after its handshake."""

    def __init__(self, server, quiet, *receivers):
        found = loaded(server)
        self.log = quiet(found.spec)
        self.recorder = Recorder()
        self.observer = Observer([*receivers, self.recorder], self.log)
        self.observer.start()
        self.runtime = Runtime(copy.deepcopy(found.spec), found.provider, self.log, observer=self.observer)
        self.connection = self.runtime.connect()
        self.send(*HANDSHAKE)
        self.recorder.requests.clear()

    def send(self, *messages):
        """Send messages; return the responses."""
        sent = []
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(complete(message)).encode()
            sent += self.runtime.handle(self.connection, line)
            while self.runtime.due() == 0:
                sent += self.runtime.work()
        return [json.loads(each.message) for each in sent if hasattr(each, "message")]

    def call(self, name, id=1, **arguments):
        return self.send({"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})


def complete(message):
    if isinstance(message, list):
        return [complete(each) for each in message]
    return {"jsonrpc": "2.0", **message}


@pytest.fixture
def everything(quiet):
    return Observed("everything", quiet)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"method": "ping"}, ("ping", "", "", "ok", "")),
        ({"method": "tools/list"}, ("tools/list", "", "", "ok", "")),
        (
            {"method": "tools/call", "params": {"name": "test_simple_text"}},
            ("tools/call", "test_simple_text", "", "ok", ""),
        ),
        (
            {"method": "tools/call", "params": {"name": "test_error_handling"}},
            ("tools/call", "test_error_handling", "", "tool_error", "as_written"),
        ),
        ({"method": "tools/call", "params": {"name": "x"}}, ("tools/call", OTHER, "", "error", "unknown_tool")),
        ({"method": "tools/call", "params": {"name": ["x"]}}, ("tools/call", OTHER, "", "error", "invalid_params")),
        ({"method": "prompts/get", "params": {"name": "x"}}, ("prompts/get", "", OTHER, "error", "unknown_prompt")),
        (
            {"method": "prompts/get", "params": {"name": "test_simple_prompt"}},
            ("prompts/get", "", "test_simple_prompt", "ok", ""),
        ),
        (
            {"method": "resources/read", "params": {"uri": "x:y"}},
            ("resources/read", "", "", "error", "resource_not_found"),
        ),
        ({"method": "x/y"}, (OTHER, "", "", "error", "method_not_found")),
    ],
)
def test_each_request_is_told_once(everything, message, told):
    everything.send({"id": 1, **message})

    assert everything.recorder.told() == [told]
    assert everything.recorder.requests[0].revision == "2025-11-25"
    assert everything.recorder.refusals == []


@pytest.mark.parametrize(
    ("line", "error"),
    [(b"{", "parse_error"), (b"[]", "invalid_request"), (b'{"jsonrpc":"2.0","id":1}', "invalid_request")],
)
def test_a_message_that_is_no_request_is_told_as_refused(everything, line, error):
    everything.send(line)

    assert (everything.recorder.told(), everything.recorder.refusals) == ([], [error])


def test_a_request_of_a_batch_is_told_as_if_it_were_alone(quiet):
    observed = Observed("everything", quiet)
    observed.connection = observed.runtime.connect()
    old = copy.deepcopy(HANDSHAKE)
    old[0]["params"]["protocolVersion"] = "2025-03-26"
    observed.send(*old)
    observed.recorder.requests.clear()
    observed.send([{"id": 1, "method": "ping"}, {"id": 2, "method": "tools/call", "params": {"name": "x"}}])

    assert [each[0] for each in observed.recorder.told()] == ["ping", "tools/call"]


def test_a_cancelled_request_and_a_broken_operation_are_told(everything):
    call = {"id": 5, "method": "tools/call", "params": {"name": "slow_compute", "arguments": {"seconds": 60}}}
    everything.send(call)
    assert everything.runtime.figures()["in_flight"] == 1
    everything.send({"method": "notifications/cancelled", "params": {"requestId": 5}})
    everything.runtime.snapshot.operations["tool", "test_simple_text"] = lambda: 1 / 0
    everything.call("test_simple_text")

    assert [each[3:] for each in everything.recorder.told()] == [
        ("cancelled", "cancelled"),
        ("tool_error", "tool_failed"),
    ]
    assert everything.runtime.figures()["in_flight"] == 0


def test_a_query_has_its_patterns_also_from_the_cache(quiet):
    observed = Observed("tmkb-full", quiet)
    for _ in range(2):
        observed.call("tmkb_query", context="flask endpoint that exports invoices")
    first, second = observed.recorder.requests

    assert first.exchange.facts == second.exchange.facts
    assert first.exchange.facts["pattern_ids"] and first.exchange.facts["stack"] == "flask"
    assert (first.exchange.cached, second.exchange.cached) == (False, True)


def test_a_framework_that_no_file_names_is_no_stack(quiet):
    observed = Observed("tmkb-full", quiet)
    observed.call("tmkb_query", context="export invoices", language="zzz", framework="made-up-by-a-client")

    assert observed.recorder.requests[0].exchange.facts["stack"] is None


def test_bytes_are_those_of_the_messages(everything):
    everything.recorder.bytes = [0, 0]
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    (sent,) = everything.runtime.handle(everything.connection, line)

    assert everything.recorder.bytes == [len(line), len(sent.message)]


class Broken(Receiver):
    """Fails at the first request."""

    def completed(self, completion):
        raise RuntimeError("a bug")


def test_a_receiver_that_fails_is_removed_and_the_request_is_answered(quiet):
    observed = Observed("everything", quiet, Broken())

    assert [each["id"] for each in observed.send({"id": 1, "method": "ping"}, {"id": 2, "method": "ping"})] == [1, 2]
    assert observed.observer.receivers == [observed.recorder]
    assert observed.recorder.lines == ["observer_failed"]


def test_http_tells_refusals_sessions_streams_and_trace_headers(quiet):
    observed = Observed("everything", quiet)
    client = Http.__new__(Http)
    client.endpoint, client.session = Endpoint(observed.runtime, Guard()), {}
    parent = {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}
    client.call("GET", {"host": "evil.example"})
    client.call("POST", headers={"host": "127.0.0.1"})
    client.alone("tools/call", 1, {**named("test_simple_text"), **parent}, name="test_simple_text")
    client.shake()
    assert observed.observer.figures()["sessions"] == 1
    client.listen()
    client.session |= parent
    client.send("ping", 3)

    assert observed.recorder.refusals == ["foreign_host", "wrong_media_type"]
    assert [each.exchange.trace_headers.get("traceparent") for each in observed.recorder.requests] == [
        parent["traceparent"],
        None,
        parent["traceparent"],
    ]
    assert observed.observer.figures() == {
        "connections": 2,
        "in_flight": 0,
        "sessions": 1,
        "streams": 1,
        "subscriptions": 0,
        "tasks": 0,
    }


def test_a_reload_is_told_by_the_line_of_the_log(everything):
    everything.log.write("reloaded")
    everything.log.write({"level": "info", "message": "of a request"})

    assert everything.recorder.lines == ["reloaded"]
