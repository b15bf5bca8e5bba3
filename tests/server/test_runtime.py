"""What becomes of operations that break down, and of outcomes that cannot be sent."""

import copy
import json
import os
import runpy
import select
from types import SimpleNamespace

import pytest

from tmkb.errors import ToolError
from tmkb.providers.operation import Pause, Result
from tmkb.server import log
from tmkb.server.runtime import Runtime

CALL = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "tmkb_query", "arguments": {"context": "x"}},
}


class Stub:
    """A provider whose one operation does what it is told."""

    def __init__(self, act):
        self.act = act

    def operation(self, name, tool):
        return lambda **arguments: self.act()


@pytest.fixture
def call(spec, tmp_path):
    """The answer to a call whose operation is ``act``, and what is logged."""

    def answer(act, message=CALL, revision="2025-11-25"):
        with open(tmp_path / "log", "w+b") as file:
            output = log.Log(spec["server"]["log"], "debug", file.fileno())
            runtime = Runtime(copy.deepcopy(spec), lambda name: Stub(act), output)
            connection = runtime.connect()
            for line in (
                {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": revision}},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
            ):
                runtime.handle(connection, json.dumps(line).encode())
            (sent,) = runtime.handle(connection, json.dumps(message).encode())
            output.flush()
            file.seek(0)
            return json.loads(sent.message), file.read().decode()

    return answer


def test_a_cancelled_call_is_logged(spec, tmp_path):
    def wait():
        yield Pause(60)

    with open(tmp_path / "log", "w+b") as file:
        output = log.Log(spec["server"]["log"], "info", file.fileno())
        runtime = Runtime(copy.deepcopy(spec), lambda name: Stub(wait), output)
        connection = runtime.connect()
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
        for line in (
            {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
            {"method": "notifications/initialized"},
            CALL,
            cancelled,
            cancelled,  # of a request that is completed: ignored
        ):
            runtime.handle(connection, json.dumps({"jsonrpc": "2.0", **line}).encode())
        output.flush()
        file.seek(0)

        assert file.read().decode().count(f"[INFO] [req_id={CALL['id']}] Cancelled by the client\n") == 1


def explode():
    raise RuntimeError("secret path /etc/tmkb")


def test_an_unexpected_exception_is_logged_with_details_and_sent_without(call):
    answer, logged = call(explode)

    assert answer["result"] == {
        "content": [{"type": "text", "text": "Query failed. The error was logged."}],
        "isError": True,
    }
    assert "[ERROR] [req_id=7] RuntimeError: secret path /etc/tmkb\n" in logged
    assert "[ERROR] [req_id=7] Traceback (most recent call last):\n" in logged
    assert "[ERROR] [req_id=7] Query failed. The error was logged.\n" in logged


def test_output_that_breaks_its_schema_is_logged_with_the_reference_of_the_error(spec, tmp_path):
    changed = copy.deepcopy(spec)
    changed["tools"]["tmkb_query"] |= {"output": {"type": "object"}, "on_exception": "broken"}
    error = {"surface": "tool", "fields": ["ref"], "message": "Broken, see {ref}"}
    changed["revisions"]["2025-11-25"]["errors"]["broken"] = error
    changed["server"]["log"]["bad_output"]["message"] = "{ref}: {violation}"
    with open(tmp_path / "log", "w+b") as file:
        output = log.Log(changed["server"]["log"], "info", file.fileno())
        runtime = Runtime(changed, lambda name: Stub(lambda: Result([], structured=5)), output)
        connection = runtime.connect()
        connection.state = "initialized"
        (sent,) = runtime.handle(connection, json.dumps(CALL).encode())
        output.flush()
        file.seek(0)
        logged = file.read().decode()
    (text,) = json.loads(sent.message)["result"]["content"]
    reference = text["text"].removeprefix("Broken, see ")

    assert f"[ERROR] [req_id=7] {reference}: " in logged and reference != "None"


def test_a_tool_error_is_sent_with_its_message(call):
    def refuse():
        raise ToolError("unsupported_language", field="language", value="x" * 90, allowed="python")

    answer, logged = call(refuse)

    assert answer["result"]["content"][0]["text"] == f"Invalid language '{'x' * 80}…'. Supported languages: python"
    assert "Traceback" not in logged


@pytest.mark.parametrize(
    "outcome", [float("nan"), {"x": {1, 2}}, Result([{"type": "text", "text": float("inf")}]), "no facts for the log"]
)
def test_an_outcome_that_cannot_be_sent_is_an_internal_error(call, outcome):
    answer, logged = call(lambda: outcome)

    assert answer == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "Internal error"}}
    assert "Traceback" in logged


def test_an_outcome_that_cannot_be_sent_keeps_its_place_in_a_batch(call):
    answer, _ = call(lambda: float("nan"), [CALL, {"jsonrpc": "2.0", "id": 8, "method": "ping"}], "2025-03-26")

    assert [(each["id"], "error" in each) for each in answer] == [(7, True), (8, False)]


def test_a_plain_value_is_sent_as_text(call):
    def value():
        return {"é": [1, None]}

    answer, _ = call(lambda: Result([{"type": "text", "text": json.dumps(value())}], facts={"patterns_included": 2}))

    assert json.loads(answer["result"]["content"][0]["text"]) == value()


def test_deep_messages_do_not_break_the_debug_log(call):
    deep = current = {}
    for _ in range(400):
        current["x"] = current = {}
    answer, logged = call(explode, {**CALL, "params": {**CALL["params"], "_meta": deep}})

    assert answer["id"] == 7
    assert "…" in logged


def test_the_debug_log_contains_each_step_of_a_request(spec, tmp_path):
    listing = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
    with open(tmp_path / "log", "w+b") as file:
        output = log.Log(spec["server"]["log"], "debug", file.fileno())
        runtime = Runtime(spec, lambda name: Stub(lambda: Result([], facts={"patterns_included": 2})), output)
        connection = runtime.connect()
        connection.state = "initialized"

        def lines(message):
            """What is logged of a message: the request, the step, and its JSON; and the responses."""
            begin = file.seek(0, os.SEEK_END)
            sent = [sent.message for sent in runtime.handle(connection, json.dumps(message).encode())]
            output.flush()
            file.seek(begin)
            logged = [line.split(" ", 3) for line in file.read().decode().splitlines() if line.startswith("[DEBUG]")]
            return [(request, step, json.loads(text)) for _, request, step, text in logged], sent

        logged, (response,) = lines(listing)
        assert logged == [
            ("[req_id=3]", "message_in", listing),
            ("[req_id=3]", "handler", {"method": "tools/list", "name": "list_tools"}),
            ("[req_id=3]", "tools_discovered", {"count": 1, "tools": ["tmkb_query"]}),
            ("[req_id=3]", "message_out", json.loads(response)),
        ]

        for _ in range(2):  # the second one is no less detailed: the cache is not used
            logged, (response,) = lines(CALL)
            (timing,) = [text for _, step, text in logged if step == "timing"]
            assert (timing["operation"], timing["ms"] >= 0) == ("knowledge.query", True)
            assert [line for line in logged if line[1] != "timing"] == [
                ("[req_id=7]", "message_in", CALL),
                ("[req_id=7]", "handler", {"method": "tools/call", "name": "call_tool"}),
                ("[req_id=7]", "result", {"content": [], "isError": False}),
                ("[req_id=7]", "message_out", json.loads(response)),
            ]

        refused = {**CALL, "params": {"name": "tmkb_query", "arguments": {}, "_meta": {"a": "x" * 100}}}
        logged, (response,) = lines(refused)
        (text,) = json.loads(response)["result"]["content"]
        assert logged[0][2]["params"]["_meta"] == {"a": "x" * 80 + "…"}
        assert logged[2:] == [
            ("[req_id=7]", "validation_error", text["text"].splitlines()),
            ("[req_id=7]", "message_out", json.loads(response)),
        ]


def test_results_are_cached_by_their_arguments(spec, quiet):
    calls = []

    class Counting:
        def operation(self, name, tool):
            return lambda **arguments: calls.append(arguments) or "answer"

    changed = copy.deepcopy(spec)
    changed["tools"]["tmkb_query"] |= {"cache_results": 2, "log": changed["server"]["log"]["called"]}
    runtime = Runtime(changed, lambda name: Counting(), quiet(changed))
    connection = runtime.connect()
    connection.state = "initialized"

    def ask(context, **more):
        arguments = {"context": context, **more}
        message = {**CALL, "params": {"name": "tmkb_query", "arguments": arguments}}
        return [sent.message for sent in runtime.handle(connection, json.dumps(message).encode())]

    first = ask("a")
    assert ask("a") == first
    assert len(calls) == 1
    for again in (lambda: ask("a", verbosity="human"), lambda: ask("b"), lambda: ask("a")):
        again()
    assert len(calls) == 4  # the oldest of three is not kept
    for _ in range(2):
        ask("x" * 2000)
    assert len(calls) == 6  # long questions are not kept
    assert len(runtime.snapshot.result_cache["tmkb_query"]) == 2


def test_an_operation_that_cannot_be_prepared_fails_when_it_is_called(spec, quiet):
    def broken(name):
        raise OSError("gone")

    runtime = Runtime(spec, broken, quiet(spec))
    runtime.warm_up()
    connection = runtime.connect()
    connection.state = "initialized"
    (sent,) = runtime.handle(connection, json.dumps(CALL).encode())

    assert json.loads(sent.message)["result"]["isError"] is True


def test_a_failed_preparation_is_logged(spec, tmp_path):
    def broken(name):
        raise OSError("gone")

    with open(tmp_path / "log", "w+b") as file:
        output = log.Log(spec["server"]["log"], fd=file.fileno())
        Runtime(spec, broken, output).warm_up()
        output.flush()
        file.seek(0)

        assert file.read().decode() == (
            "[WARNING] Tool tmkb_query could not be prepared, so its calls will probably fail: OSError: gone\n"
        )


# Log


@pytest.fixture
def pipe():
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    os.close(write)


def test_lines_that_find_no_room_are_dropped_and_counted(spec, pipe):
    read, write = pipe
    output = log.Log(spec["server"]["log"], "info", write)
    while not output.dropped:
        output.write("failed", line="x" * 5000)
        output.flush()
    output.write("failed", line="y")
    output.flush()
    received = os.read(read, 1 << 20)
    output.write("failed", line="z")
    output.flush()
    received += os.read(read, 1 << 20)
    lines = received.decode().splitlines()

    assert lines[-2:] == ["[WARNING] Log lines dropped because stderr is not read: 2", "[ERROR] z"]
    assert all(line.startswith("[") for line in lines)


def test_a_piece_of_the_log_fits_into_the_smallest_pipe(spec, monkeypatch):
    """A pipe that is writable takes PIPE_BUF bytes without blocking: 4096 on Linux, 512 on macOS."""
    monkeypatch.setattr(select, "PIPE_BUF", 512, raising=False)
    pieces = []
    output = runpy.run_path(log.__file__)["Log"](spec["server"]["log"])
    output.output = SimpleNamespace(has_room=lambda: True, write=pieces.append)
    output.write("failed", line="x" * 5000)
    output.flush()

    assert max(map(len, pieces)) == 512
    assert b"".join(pieces) == b"[ERROR] " + b"x" * 5000 + b"\n"


def test_a_closed_stderr_is_not_an_error(spec, pipe):
    read, write = os.pipe()
    os.close(read)
    output = log.Log(spec["server"]["log"], "info", write)
    output.write("shutdown")
    output.flush()
    os.close(write)
    output.write("shutdown")
    output.flush()


def test_lines_do_not_wait_for_ever(spec, pipe):
    read, write = pipe
    output = log.Log(spec["server"]["log"], "info", write)
    for _ in range(100):
        output.write("shutdown")

    assert os.read(read, 1 << 20).count(b"\n") == 100
