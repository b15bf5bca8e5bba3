"""Values of arguments that an operation lists when it is asked."""

import copy
import json

import pytest

from tmkb.errors import ToolError
from tmkb.providers.operation import Pause
from tmkb.server.runtime import Runtime

ID = {"ref": {"type": "ref/resource", "uri": "tmkb://patterns/{id}"}, "argument": {"name": "id", "value": "B"}}


class Stub:
    """A provider whose one operation lists what it is told to."""

    def __init__(self, act):
        self.act = act

    def operation(self, name, definition):
        return self.act


@pytest.fixture
def complete(runtimes, quiet):
    """The response to a completion whose values ``act`` lists."""

    def answer(act, params=ID, revision="2025-11-25"):
        spec = copy.deepcopy(runtimes("tmkb-full").spec)
        runtime = Runtime(spec, lambda name: Stub(act), quiet(spec))
        connection = runtime.connect()
        initialize = {"protocolVersion": revision, "capabilities": {}}
        for line in (
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ):
            runtime.handle(connection, json.dumps(line).encode())
        line = {"jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": params}
        sent = runtime.handle(connection, json.dumps(line).encode())
        while runtime.due() is not None:
            sent += runtime.work()
        (response,) = sent
        return json.loads(response.message)

    return answer


def values(response):
    return response["result"]["completion"]


def test_values_with_the_prefix_are_returned(complete):
    assert values(complete(lambda **_: ["bee", "Bear", "ant"])) == {
        "values": ["bee", "Bear"],
        "total": 2,
        "hasMore": False,
    }


@pytest.mark.parametrize(("count", "more"), [(100, False), (101, True), (250, True)])
def test_the_result_shows_that_there_are_more_values(complete, count, more):
    found = values(complete(lambda **_: [f"b{number}" for number in range(count)]))

    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, count, more)


def test_the_operation_receives_the_other_arguments(complete):
    told = {}
    context = {"context": {"arguments": {"color": "red"}}}
    complete(lambda **given: told.update(given) or [], ID | context)
    assert told == {"value": "B", "arguments": {"color": "red"}}

    complete(lambda **given: told.update(given) or [], ID | context, "2025-03-26")  # which knows no context
    assert told == {"value": "B", "arguments": {}}


def test_it_may_take_its_time(complete):
    def slow(**_):
        yield Pause(0.01)
        return ["bee"]

    assert values(complete(slow))["values"] == ["bee"]


def test_it_may_break_down(complete):
    def broken(**_):
        raise RuntimeError("secret")

    assert complete(broken)["error"] == {"code": -32603, "message": "Internal error"}
    assert complete(lambda **_: 5)["error"] == {"code": -32603, "message": "Internal error"}


def test_it_may_fail(complete):
    def failing(**_):
        raise ToolError("as_written", sentence="Nobody is at home.")

    assert complete(failing)["error"] == {"code": -32603, "message": "Nobody is at home."}


def test_an_operation_that_there_is_not(complaints):
    said = complaints(
        servers__everything__prompts__p="""
        kind: prompt
        name: p
        arguments: {a: {complete: knowledge.idz}}
        provider: script.answer
        answer: x
        """,
        servers__everything__resources__r="""
        kind: resource
        name: r
        uriTemplate: x://{a}
        complete: {a: knowledge.idz}
        entries: knowledge.entry
        provider: script.answer
        answer: x
        """,
    )

    assert said == [
        "servers/everything/prompts/p.yaml:4:27: There is no operation 'knowledge.idz'. Did you mean 'knowledge.ids'?",
        "servers/everything/resources/r.yaml:5:15: There is no operation 'knowledge.idz'. Did you mean 'knowledge.ids'?",
        "servers/everything/resources/r.yaml:6:10: There is no operation 'knowledge.entry'."
        " Did you mean 'knowledge.entries'?",
    ]
