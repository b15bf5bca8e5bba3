"""What is counted of calls, and when."""

import copy
import json

import pytest

from tmkb.errors import ToolError
from tmkb.protocol.caller import Caller
from tmkb.providers.operation import Pause, Result
from tmkb.providers.usage import Usage
from tmkb.server.runtime import Runtime

FACTS = {"patterns_included": 0}  # for the log


@pytest.fixture
def usage():
    return Usage({}, None)


def figures(usage):
    return json.loads(usage.report())["tools"]


def test_nothing_was_called(usage):
    assert figures(usage) == {}


def test_figures_of_several_calls(usage):
    for seconds in range(1, 101):
        usage.record("a", seconds % 10 == 0, seconds / 1000)
    usage.record("b", True, None)

    assert figures(usage) == {
        "a": {"calls": 100, "errors": 10, "milliseconds": {"mean": 50.5, "p95": 95.0, "max": 100.0}},
        "b": {"calls": 1, "errors": 1},
    }


@pytest.mark.parametrize(("times", "percentile"), [([5], 5), ([1, 9], 9), (list(range(1, 21)), 19)])
def test_the_percentile_of_few_calls(usage, times, percentile):
    for milliseconds in times:
        usage.record("a", False, milliseconds / 1000)

    assert figures(usage)["a"]["milliseconds"]["p95"] == percentile


def test_the_percentile_is_that_of_the_last_calls(usage):
    usage.record("a", False, 100.0)
    for _ in range(1000):
        usage.record("a", False, 0.001)

    assert figures(usage)["a"]["milliseconds"]["p95"] == 1.0
    assert figures(usage)["a"]["milliseconds"]["max"] == 100_000.0


class Talker:
    """A client of a runtime whose tools do what they are told, and whose usage is counted."""

    def __init__(self, spec, quiet, acts):
        self.usage = Usage({}, None)
        self.acts = acts
        self.runtime = Runtime(spec, lambda name: self.usage if name == "usage" else self, quiet(spec))
        self.connection = self.runtime.connect()
        self.send("initialize", 0, protocolVersion="2025-03-26", capabilities={})
        self.runtime.handle(self.connection, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def operation(self, name, definition):
        return self.acts[name]

    def send(self, method, id=1, **params):
        line = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return [sent.message for sent in self.runtime.handle(self.connection, json.dumps(line).encode())]

    def call(self, name, id=1, **arguments):
        return self.send("tools/call", id, name=name, arguments=arguments)


@pytest.fixture
def talk(runtimes, quiet):
    spec = copy.deepcopy(runtimes("tmkb-full").spec)
    return lambda **acts: Talker(spec, quiet, acts)


def refuse(**_):
    raise ToolError("unknown_name", field="pattern", value="x")


def explode(**_):
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("act", "errors"),
    [
        (lambda **_: Result([{"type": "text", "text": "{}"}], facts=FACTS), 0),
        (lambda **_: Result([], is_error=True, facts=FACTS), 1),
        (refuse, 1),
        (explode, 1),
        (lambda **_: object(), 1),
    ],
)
def test_a_call_is_counted_however_it_ends(talk, act, errors):
    talker = talk(advise=act)
    talker.call("tmkb_query", context="x")
    (counted,) = figures(talker.usage).values()

    assert (counted["calls"], counted["errors"]) == (1, errors)
    assert 0 <= counted["milliseconds"]["mean"] < 10_000
    assert talker.runtime.start_times == {}


def test_a_result_that_breaks_its_own_schema_is_an_error(talk):
    talker = talk(find=lambda **_: {"count": "many"})
    talker.call("tmkb_list")

    assert figures(talker.usage)["tmkb_list"]["errors"] == 1


def test_refused_arguments_are_counted_without_a_latency(talk):
    talker = talk()
    talker.call("tmkb_query")

    assert figures(talker.usage) == {"tmkb_query": {"calls": 1, "errors": 1}}


def test_only_calls_of_tools_are_counted(talk):
    talker = talk(index=lambda **_: "x", ids=lambda **_: [])
    talker.send("resources/read", uri="tmkb://patterns")
    talker.send("resources/read", uri="tmkb://nothing")
    talker.call("no_such_tool")
    talker.send("tools/list")

    assert figures(talker.usage) == {}
    assert talker.runtime.start_times == {}


def test_a_cached_result_counts(talk):
    talker = talk(advise=lambda **_: Result([{"type": "text", "text": "{}"}], facts=FACTS))
    for _ in range(3):
        talker.call("tmkb_query", context="x")
    counted = figures(talker.usage)["tmkb_query"]

    assert (counted["calls"], counted["errors"]) == (3, 0)


def test_an_operation_in_steps_is_counted_at_its_end(talk):
    def slow(**_):
        yield Pause(0.02)
        return {"valid": True, "problem_count": 0, "problems": []}

    talker = talk(validate=slow)
    talker.call("tmkb_validate", text="x")
    assert figures(talker.usage) == {}
    while talker.runtime.due() is not None:
        talker.runtime.work()

    assert figures(talker.usage)["tmkb_validate"]["milliseconds"]["max"] >= 20


def test_a_call_that_was_cancelled_is_none(talk):
    def slow(**_):
        yield Pause(60)

    talker = talk(validate=slow)
    talker.call("tmkb_validate", 7, text="x")
    talker.runtime.handle(
        talker.connection, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
    )

    assert (figures(talker.usage), talker.runtime.start_times) == ({}, {})


def test_calls_in_a_batch_are_counted(talk):
    talker = talk(advise=refuse)
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "tmkb_query", "arguments": {"context": "x"}}}
    talker.runtime.handle(talker.connection, json.dumps([call | {"id": id} for id in (1, 2)]).encode())

    assert figures(talker.usage)["tmkb_query"]["errors"] == 2


def test_the_default_server_counts_nothing(runtime):
    assert runtime.usage is None
    assert runtime.start_times == {}


def test_a_principal_sees_its_own_figures_only(talk):
    talker = talk(advise=lambda **_: Result([{"type": "text", "text": "{}"}], facts=FACTS))
    reports = []
    for talker.connection.caller in (Caller("one"), Caller("two")):
        talker.call("tmkb_query", context="x")
        (answer,) = talker.send("resources/read", uri="tmkb://usage")
        reports.append(json.loads(json.loads(answer)["result"]["contents"][0]["text"]))

    assert [report["tools"]["tmkb_query"]["calls"] for report in reports] == [1, 1]
