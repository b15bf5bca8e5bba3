"""Calls that go on after they were answered, on a real process: the extension io.modelcontextprotocol/tasks."""

import re
import time

import pytest

from tests.server.test_stateless import ACCEPT, Client, meta
from tests.support.process import TIMEOUT

pytestmark = pytest.mark.process

TASKS = "io.modelcontextprotocol/tasks"
FOLLOWING = {"elicitation": {}, "extensions": {TASKS: {}}}


@pytest.fixture
def client():
    with Client("--server", "everything") as client:
        yield client


def task(client, method, task_id, **more):
    """The answer to tasks/get, update or cancel."""
    return client.request(f"tasks/{method}", 1, FOLLOWING, taskId=task_id, **more)


def begun(client, name, arguments=None, **more):
    """The id of the task that a call has become."""
    result = client.call(name, arguments, capabilities=FOLLOWING, **more)["result"]
    assert result["resultType"] == "task", result
    return result["taskId"]


def until(client, task_id, *statuses):
    """The task when it has come to one of these."""
    deadline = time.monotonic() + TIMEOUT
    while (found := task(client, "get", task_id)["result"])["status"] not in statuses:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def text(found):
    return found["result"]["content"][0]["text"]


def test_a_call_becomes_a_flat_task_that_can_be_polled_at_once(client):
    result = client.call("slow_compute", {"seconds": 30, "label": "x"}, capabilities=FOLLOWING)["result"]
    found = task(client, "get", result["taskId"])["result"]

    assert set(result) == {
        "resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "_meta"
    }  # fmt: skip
    assert (result["resultType"], found["resultType"], found["status"]) == ("task", "complete", "working")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", result["createdAt"])
    assert (result["ttlMs"], result["pollIntervalMs"]) == (3600000, 500)


def test_it_ends_with_the_result_of_the_call(client):
    task_id = begun(client, "slow_compute", {"seconds": 0, "label": "sum"})
    found = until(client, task_id, "completed")

    assert text(found) == "sum: done"
    assert "error" not in found and "inputRequests" not in found


def test_a_failure_of_the_tool_is_a_result_and_one_of_the_protocol_an_error(client):
    failing, broken = begun(client, "failing_job"), begun(client, "protocol_error_job")
    failed, error = until(client, failing, "completed"), until(client, broken, "failed")

    assert (failed["result"]["isError"], text(failed)) == (True, "The job failed")
    assert error["error"] == {"code": -32603, "message": "Internal error"}
    assert "result" not in error


def test_a_client_that_cannot_follow_waits_or_is_refused(client):
    waited = client.call("slow_compute", {"seconds": 0, "label": "sum"})["result"]
    refused = client.call("failing_job")["error"]
    asked = client.request("tasks/get", taskId="x")["error"]

    assert waited["content"][0]["text"] == "sum: done"
    assert (refused["code"], refused["data"]) == (-32021, {"requiredCapabilities": {"extensions": {TASKS: {}}}})
    assert asked["code"] == -32021


def test_a_task_asks_and_continues(client):
    task_id = begun(client, "multi_input")
    asked = until(client, task_id, "input_required")
    noted = task(client, "update", task_id, inputResponses={"first": ACCEPT, "other": 1})["result"]
    rest = task(client, "get", task_id)["result"]
    task(client, "update", task_id, inputResponses={"last": {"action": "accept", "content": {"name": "Lee"}}})

    assert list(asked["inputRequests"]) == ["first", "last"]
    assert "requestState" not in asked
    assert set(noted) == {"resultType", "_meta"}
    assert (rest["status"], list(rest["inputRequests"])) == ("input_required", ["last"])
    assert text(until(client, task_id, "completed")) == "Ann Lee"


def test_an_answer_that_is_none_is_refused_and_changes_nothing(client):
    task_id = begun(client, "confirm_delete", {"filename": "a.txt"})
    until(client, task_id, "input_required")
    refused = task(
        client, "update", task_id, inputResponses={"confirm": {"action": "accept", "content": {"confirm": 1}}}
    )

    assert refused["error"]["code"] == -32602
    assert task(client, "get", task_id)["result"]["status"] == "input_required"


def test_a_task_is_cancelled(client):
    for name, arguments in (("slow_compute", {"seconds": 60, "label": "x"}), ("confirm_delete", {"filename": "a"})):
        task_id = begun(client, name, arguments)
        noted = task(client, "cancel", task_id)["result"]
        again = task(client, "cancel", task_id)["result"]

        assert set(noted) == set(again) == {"resultType", "_meta"}
        assert task(client, "get", task_id)["result"]["status"] == "cancelled"
        assert set(task(client, "update", task_id, inputResponses={"confirm": ACCEPT})["result"]) == {
            "resultType",
            "_meta",
        }


def test_one_asks_before_it_becomes_a_task(client):
    asked = client.call("test_tool_with_task", capabilities=FOLLOWING)["result"]
    task_id = begun(
        client, "test_tool_with_task", inputResponses={"user_name": ACCEPT}, requestState=asked["requestState"]
    )

    assert asked["resultType"] == "input_required"
    assert text(until(client, task_id, "completed")) == "Hello, Ann!"


@pytest.mark.parametrize("method", ["get", "update", "cancel"])
def test_an_unknown_task(client, method):
    assert task(client, method, "nope", inputResponses={})["error"] == {"code": -32602, "message": "Unknown task: nope"}


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_methods_that_the_extension_lacks(client, method):
    assert client.request(method, 1, FOLLOWING, taskId="x")["error"]["code"] == -32601


def test_a_server_without_the_extension():
    with Client() as client:
        assert client.request("tasks/get", 1, FOLLOWING, taskId="x")["error"]["code"] == -32601


def test_a_handshake_client_knows_no_tasks(client):
    client.handshake()

    assert (
        client.ask("tools/call", name="slow_compute", arguments={"seconds": 0, "label": "x"})["result"]["isError"]
        is False
    )
    assert client.ask("tasks/get", taskId="x")["error"]["code"] == -32601


def test_only_so_many_are_known_and_those_that_are_over_make_room(overlay):
    folder = overlay(servers__everything__server="kind: server\nextends: packaged\nlimits: {tasks: 1}\n")
    with Client("--server", "everything", "--schemas", folder) as client:
        first = begun(client, "slow_compute", {"seconds": 60, "label": "x"})
        refused = client.call("slow_compute", {"seconds": 0, "label": "x"}, capabilities=FOLLOWING)["error"]
        task(client, "cancel", first)
        begun(client, "slow_compute", {"seconds": 0, "label": "x"})

        assert refused["message"] == "Too many tasks at once. Limit: 1"
        assert task(client, "get", first)["error"]["code"] == -32602


def test_ids_cannot_be_guessed(client):
    ids = {begun(client, "slow_compute", {"seconds": 0, "label": "x"}) for _ in range(5)}

    assert len(ids) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)
    assert meta(FOLLOWING)["io.modelcontextprotocol/clientCapabilities"]["extensions"] == {TASKS: {}}
