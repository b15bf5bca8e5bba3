"""Operations that run step by step: how they are started, stopped, held up, and what they do wrong."""

import contextlib
import json
import time

import pytest

from tests.process import Server
from tmkb.cli import service
from tmkb.engine.effects import Send
from tmkb.errors import ToolError
from tmkb.operation import Ask, Log, Notify, Pause, Progress, Question
from tmkb.runtime import Runtime

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_slow","_meta":{"progressToken":"t"}}}'
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'


class Provider:
    """A provider whose one operation is this generator function."""

    def __init__(self, act):
        self.act = act

    def operation(self, name, definition):
        return lambda **arguments: self.act()


class Peer:
    """A client of a runtime whose every operation is ``act``."""

    def __init__(self, spec, act, quiet, capabilities):
        self.runtime = Runtime(spec, lambda name: Provider(act), quiet(spec))
        self.connection = self.runtime.connect()
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        return [
            json.loads(sent.message) for sent in self.runtime.handle(self.connection, line) if isinstance(sent, Send)
        ]

    def work(self):
        return [json.loads(sent.message) for sent in self.runtime.work()]

    def finish(self):
        """Everything that is said until nothing runs."""
        said = []
        while (due := self.runtime.due()) is not None:
            assert due < 5
            time.sleep(due)
            said += self.work()
        return said


@pytest.fixture
def peer(quiet):
    found = service.service("everything")

    def make(act, capabilities=None, **limits):
        server = {**found.spec["server"], "limits": {**found.spec["server"]["limits"], **limits}}
        return Peer({**found.spec, "server": server}, act, quiet, capabilities or {})

    return make


def texts(messages):
    return [message["result"]["content"][0]["text"] for message in messages if "result" in message]


def test_each_step_leaves_room_for_others(peer):
    def act():
        yield Progress(1)
        yield Progress(2, 3, "nearly")
        return "done"

    client = peer(act)
    first = client.send(CALL)
    between = client.send(b'{"jsonrpc":"2.0","id":8,"method":"ping"}')
    second, last = client.work(), client.work()

    assert [message["params"] for message in first] == [{"progressToken": "t", "progress": 1}]
    assert between == [{"jsonrpc": "2.0", "id": 8, "result": {}}]
    assert [m["params"] for m in second] == [{"progressToken": "t", "progress": 2, "total": 3, "message": "nearly"}]
    assert texts(last) == ["done"]


def test_progress_only_grows(peer):
    def act():
        for progress in (1, 1, 0, 2):
            yield Progress(progress)
        return ""

    client = peer(act)

    assert [m["params"]["progress"] for m in client.send(CALL) + client.finish() if "method" in m] == [1, 2]


def test_what_is_cancelled_is_closed_and_not_answered(peer):
    closed = []

    def act():
        try:
            yield Pause(3600)
        finally:
            closed.append(True)

    client = peer(act)
    client.send(CALL)

    assert client.send(CANCEL) == []
    assert closed == [True]
    assert client.runtime.due() is None
    assert client.send(CANCEL) == []  # again, or too late


def test_an_operation_that_will_not_be_closed_harms_nobody(peer):
    def act():
        with contextlib.suppress(GeneratorExit):
            yield Pause(3600)
        yield Pause(3600)

    client = peer(act)
    client.send(CALL)

    assert client.send(CANCEL) == []
    assert client.send(b'{"jsonrpc":"2.0","id":8,"method":"ping"}') == [{"jsonrpc": "2.0", "id": 8, "result": {}}]


@pytest.mark.parametrize("said", ["text", None, 5, object()])
def test_an_operation_that_says_something_odd_has_failed(peer, said):
    def act():
        yield said

    assert texts(peer(act).send(CALL)) == ["The tool failed. The error was logged."]


def test_an_operation_that_breaks_down_half_way_has_failed(peer):
    def act():
        yield Progress(1)
        raise RuntimeError("secret")

    client = peer(act)

    assert texts(client.send(CALL) + client.finish()) == ["The tool failed. The error was logged."]


def test_a_client_that_does_not_answer_is_not_waited_for(peer):
    def act():
        try:
            yield Ask({"roots": Question("roots/list")})
        except ToolError as error:
            return error.error

    client = peer(act, {"roots": {}}, answer_seconds=0.05)
    (asked,) = client.send(CALL)
    said = client.finish()

    assert asked == {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
    assert said[0] == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert texts(said) == ["client_silent"]
    assert client.send({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}) == []  # too late


def test_what_cannot_be_asked_can_be_done_without(peer):
    def act():
        try:
            yield Ask({"llm": Question("sampling/createMessage", {})})
        except ToolError as error:
            yield Log("error", error.error)
        return "without"

    client = peer(act)
    said = client.send(CALL) + client.finish()

    assert said[0]["params"] == {"level": "error", "data": "client_lacks_capability"}
    assert texts(said) == ["without"]


def test_a_notification_that_the_revision_does_not_have_is_not_sent(peer):
    def act():
        yield Notify("notifications/of/nothing")
        return "done"

    client = peer(act)

    assert texts(client.send(CALL) + client.finish()) == ["done"]


def test_only_so_many_run_at_once(peer):
    def act():
        yield Pause(3600)

    client = peer(act, running=2)
    answers = [client.send(CALL.replace(b":7", b":%d" % number)) for number in (1, 2, 3)]

    assert answers[:2] == [[], []]
    assert answers[2][0]["error"] == {
        "code": -32600,
        "message": "Too many requests at once. Limit: 2",
        "data": {"limit": 2},
    }


def test_at_the_end_what_waits_for_the_client_is_stopped(peer):
    def act():
        yield Ask({"roots": Question("roots/list")})

    client = peer(act, {"roots": {}})
    client.send(CALL)
    client.runtime.end(client.connection)

    assert client.runtime.due() is None


def script(overlay, steps):
    return overlay(
        servers__tmkb__tools__slow=f"kind: tool\nname: slow\ndescription: Slow.\nprovider: script.steps\nsteps: {steps}\n"
        "input: {type: object}\n"
    )


def test_what_runs_when_the_input_ends_is_answered(overlay):
    with Server("--schemas", script(overlay, "[{pause: 0.3}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        rest, status = server.end()

    assert (texts(rest), status) == (["done"], 0)


def test_what_runs_for_too_long_after_the_end_is_stopped(overlay):
    with Server("--schemas", script(overlay, "[{pause: 3600}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        started = time.monotonic()
        rest, status = server.end()

    assert (rest, status) == ([], 0)
    assert 4 < time.monotonic() - started < 60  # five seconds, and a machine may be busy


def test_a_signal_lets_what_runs_end(overlay):
    with Server("--schemas", script(overlay, "[{pause: 0.5}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        assert server.ask("ping", "p")["id"] == "p"  # so that the call has begun
        server.interrupt()
        answer = server.read()

        assert texts([answer]) == ["done"]
        assert server.wait() == 0
