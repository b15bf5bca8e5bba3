"""Operations that run step by step: how they are started, stopped, held up, and what they do wrong."""

import contextlib
import json
import time

import pytest

import tmkb
from tests.server.test_stateless import meta
from tests.support.process import Server
from tmkb.errors import ToolError
from tmkb.protocol.effects import Send
from tmkb.providers.operation import Ask, Detach, Log, Notify, Pause, Progress, Question
from tmkb.server.runtime import Runtime

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

    def __init__(self, spec, act, quiet, capabilities, revision="2025-11-25"):
        self.runtime = Runtime(spec, lambda name: Provider(act), quiet(spec))
        self.connection = self.runtime.connect()
        params = {"protocolVersion": revision, "capabilities": capabilities}
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
    found = tmkb.Server.load("everything")

    def make(act, capabilities=None, revision="2025-11-25", **limits):
        server = {**found.spec["server"], "limits": {**found.spec["server"]["limits"], **limits}}
        return Peer({**found.spec, "server": server}, act, quiet, capabilities or {}, revision)

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


def test_a_cancelled_operation_is_closed_and_gets_no_response(peer):
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


def test_an_operation_that_ignores_close_harms_no_other(peer):
    def act():
        with contextlib.suppress(GeneratorExit):
            yield Pause(3600)
        yield Pause(3600)

    client = peer(act)
    client.send(CALL)

    assert client.send(CANCEL) == []
    assert client.send(b'{"jsonrpc":"2.0","id":8,"method":"ping"}') == [{"jsonrpc": "2.0", "id": 8, "result": {}}]


@pytest.mark.parametrize("said", ["text", None, 5, object()])
def test_an_operation_that_yields_no_step_fails(peer, said):
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


def test_an_operation_can_handle_that_the_client_cannot_be_asked(peer):
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


def test_a_client_that_declares_only_other_questions_is_not_asked(peer):
    form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    required = []

    def act():
        try:
            yield Ask({"a": Question("elicitation/create", form)})
        except ToolError as error:
            required.append(error.fields["requiredCapabilities"])
        return "without"

    client = peer(act, {"elicitation": {"url": {}}})

    assert texts(client.send(CALL) + client.finish()) == ["without"]
    assert required == [{"elicitation": {"form": {}}}]


def test_a_notification_without_its_capability_is_not_sent(peer, quiet):
    def act():
        yield Notify("notifications/resources/list_changed")
        yield Notify("notifications/tools/list_changed")
        return "done"

    served = peer(act).runtime.spec
    server = {**served["server"], "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}}}
    client = Peer({**served, "server": server}, act, quiet, {})
    sent = client.send(CALL) + client.finish()

    assert [message.get("method") for message in sent] == ["notifications/tools/list_changed", None]


def test_an_operation_that_runs_again_does_not_pause_again(peer):
    def act():
        yield Pause(60)
        yield Ask({"a": Question("roots/list")})
        return "done"

    client = peer(act)
    client.connection = client.runtime.connect()
    params = {"name": "test_slow", "_meta": meta({"roots": {}}), "inputResponses": {"a": {"roots": []}}}

    assert texts(client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})) == ["done"]


def test_contents_that_depend_on_earlier_answers_are_not_cacheable(peer):
    asked = ["a", "b"]

    def act():
        for key in asked:
            yield Ask({key: Question("roots/list")})
        return "text"

    client = peer(act)
    client.connection = client.runtime.connect()

    def read(**more):
        params = {"uri": "test://static-text", "_meta": meta({"roots": {}}), **more}
        (sent,) = client.send({"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": params})
        return sent["result"]

    state = read(inputResponses={"a": {"roots": []}})["requestState"]
    asked.pop()
    answered = read(requestState=state)
    asked.pop()

    assert answered["contents"] == read()["contents"]
    assert [(result["ttlMs"], result["cacheScope"]) for result in (read(), answered)] == [
        (60000, "public"),
        (0, "private"),
    ]


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


def test_an_id_that_is_in_use_starts_nothing_and_the_limit_holds(peer):
    def act():
        yield Pause(3600)

    client = peer(act, running=2)
    again = [answer["error"]["message"] for _ in range(5) for answer in client.send(CALL)]

    assert again == ["A request of this id has not been answered yet"] * 4
    assert len(client.runtime.jobs) == 1
    assert client.send(CANCEL) == []
    assert client.runtime.jobs == []
    assert client.send(CALL) == []  # the id is free again


def test_an_id_is_in_use_until_the_batch_is_answered(peer):
    def act():
        yield Pause(0)
        return "done"

    client = peer(act, revision="2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    began = client.send([ping, json.loads(CALL), {**ping, "id": 7}])
    between = client.send(ping)
    (batch,) = client.finish()

    assert began == []
    assert between[0]["error"]["message"] == "A request of this id has not been answered yet"
    assert [(each["id"], "error" in each) for each in batch] == [(1, False), (7, False), (7, True)]
    assert client.send(ping) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def asks_twice(then):
    """An operation that asks two questions and catches the error, if the client answers one of them with one."""
    try:
        yield Ask({"first": Question("roots/list"), "second": Question("roots/list")})
    except ToolError:
        if then == "ask":
            yield Ask({"llm": Question("sampling/createMessage", {})}, declared_only=True)
        elif then == "fail":
            raise
        elif then == "pause":
            yield Pause(0)
    return "done"


@pytest.mark.parametrize("then", ["ask", "fail", "return"])
def test_an_open_question_is_cancelled_after_an_error(peer, then):
    client = peer(lambda: asks_twice(then), {"roots": {}})
    client.send(CALL)
    said = client.send({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "No"}})

    assert said[0] == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    assert len(texts(said)) == 1


def test_a_late_question_is_withdrawn_when_the_operation_fails_of_it(peer):
    def act():
        yield Ask({"roots": Question("roots/list")})

    client = peer(act, {"roots": {}}, answer_seconds=0.05)
    client.send(CALL)
    said = client.finish()

    assert said[0] == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert texts(said) == ["The client did not answer within 0.05 seconds"]


def test_answers_in_one_batch_of_which_the_first_ends_the_waiting(peer):
    client = peer(lambda: asks_twice("pause"), {"roots": {}}, revision="2025-03-26")
    client.send(CALL)
    refused = {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "No"}}
    said = client.send([refused, {"jsonrpc": "2.0", "id": 2, "result": {"roots": []}}])

    assert texts(said + client.finish()) == ["done"]


def test_messages_are_sent_despite_an_unknown_answer_in_the_call(peer):
    def act():
        yield Progress(1)
        yield Ask({"roots": Question("roots/list")}, declared_only=True)
        return "done"

    client = peer(act)
    call = json.loads(CALL)
    call["params"]["_meta"] |= meta()
    call["params"]["inputResponses"] = {"unknown": {}}
    said = client.send(call) + client.finish()

    assert [message["params"]["progress"] for message in said if "method" in message] == [1]
    assert texts(said) == ["done"]


def test_a_notification_that_cannot_be_sent_ends_nothing(peer):
    def act():
        yield Notify("notifications/resources/list_changed", {"odd": object()})
        return "done"

    client = peer(act)

    assert texts(client.send(CALL) + client.finish()) == ["done"]


def test_at_the_end_the_rest_of_a_batch_is_answered(peer):
    def act():
        yield Ask({"roots": Question("roots/list")})

    client = peer(act, {"roots": {}}, revision="2025-03-26")
    client.send([json.loads(CALL), {"jsonrpc": "2.0", "id": 8, "method": "ping"}])
    sent = [json.loads(each.message) for each in client.runtime.end(client.connection) if isinstance(each, Send)]

    assert sent[-1] == [{"jsonrpc": "2.0", "id": 8, "result": {}}]


def test_at_the_end_of_input_operations_that_wait_for_the_client_stop(peer):
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


@pytest.mark.process
def test_an_operation_completes_after_the_end_of_input(overlay):
    with Server("--schemas", script(overlay, "[{pause: 0.3}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        rest, status = server.end()

    assert (texts(rest), status) == (["done"], 0)


@pytest.mark.process
def test_a_slow_operation_is_stopped_after_the_end_of_input(overlay):
    with Server("--schemas", script(overlay, "[{pause: 3600}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        started = time.monotonic()
        rest, status = server.end()

    assert (rest, status) == ([], 0)
    assert 4 < time.monotonic() - started < 60  # five seconds, and a machine may be busy


@pytest.mark.process
def test_an_operation_completes_after_a_signal(overlay):
    with Server("--schemas", script(overlay, "[{pause: 0.5}, {return: done}]")) as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
        assert server.ask("ping", "p")["id"] == "p"  # so that the call has begun
        server.interrupt()
        answer = server.read()

        assert texts([answer]) == ["done"]
        assert server.wait() == 0


def test_a_call_becomes_a_task_when_its_operation_detaches(peer):
    def act():
        yield Progress(1)
        yield Detach()
        yield Progress(2)
        return "done"

    able = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    call["params"] = {"name": "test_tool_with_task", "_meta": {**meta(able), "progressToken": "t"}}
    client = peer(act)
    client.connection = client.runtime.connect()
    said = client.send(call) + client.finish()
    (task,) = client.runtime.tasks.by_id.values()

    assert [message["params"]["progress"] for message in said if "method" in message] == [1]
    assert [message["result"]["taskId"] for message in said if "result" in message] == [task.id]
    assert task.view()["result"]["content"] == [{"type": "text", "text": "done"}]


def test_a_notification_about_one_call_goes_to_no_other_client(peer):
    def act():
        yield Notify("notifications/elicitation/complete", {"elicitationId": "e"})
        return "done"

    client = peer(act, {"elicitation": {"url": {}}})
    other = client.runtime.connect()
    other.negotiated = client.connection.negotiated
    sent = client.runtime.handle(client.connection, CALL)
    while client.runtime.due() is not None:
        sent += client.runtime.work()

    assert [json.loads(each.message).get("method") for each in sent] == ["notifications/elicitation/complete", None]
    assert {each.connection for each in sent} == {client.connection}
