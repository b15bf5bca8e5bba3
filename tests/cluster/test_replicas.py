"""Replicas as processes with a real Redis: which requests go where, and what survives the end of which process."""

import contextlib
import hashlib
import signal
import socket
import threading
import time

import pytest

from tests.cluster.servers import Client, Redis, Replica, alone, events, messages, until
from tests.support.process import HttpServer

httpx2 = pytest.importorskip("httpx2")
pytestmark = [pytest.mark.process, pytest.mark.needs("redis")]

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
SLOW = {"id": 9, "method": "tools/call", "params": {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}}}
PROGRESS = {
    "id": 4,
    "method": "tools/call",
    "params": {"name": "test_tool_with_progress", "_meta": {"progressToken": 1}},
}
# Lets the lease of the owner of a session expire.
EXPIRE = """
local key = redis.call('KEYS', '*:session:' .. ARGV[1])[1]
local owner = redis.call('HGET', key, 'owner')
return redis.call('DEL', (string.gsub(key, ':session:.*', ':replica:' .. owner)))
"""
LOST = "The replica that handled this request has ended. The request may have been carried out"


@pytest.fixture(scope="module")
def redis():
    server = Redis()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("schemas")


@pytest.fixture(scope="module")
def replicas(redis, folder):
    with Replica(redis, folder) as one, Replica(redis, folder) as two:
        yield [one, two]
    assert [line for line in [*one.log, *two.log] if "Traceback" in line] == []


@pytest.fixture
def mortal(replicas, redis, folder):
    """A replica that a test may end, and another one."""
    one = Replica(redis, folder)
    yield [one, replicas[1]]
    one.kill()


@pytest.fixture(scope="module")
def aftermath(replicas, redis, folder):
    """What clients have of a replica that was killed, by name; each finds the other replica at the index 1."""
    one, two = Replica(redis, folder), replicas[1]
    left = {revision: Client([one, two], revision) for revision in REVISIONS}
    left["running"] = client = Client([one, two])
    with client.stream(SLOW, 1) as running, client.stream({**SLOW, "id": 10}, 0) as unread:
        arriving = events(running.iter_lines())
        left["last seen"], _ = next(arriving)
        left["events"] = list(events(client.post(PROGRESS, 0).text.splitlines()))
        left["waiting"] = []
        old = Client([one, two], "2024-11-05")
        thread = threading.Thread(target=lambda: left["waiting"].append(old.post(SLOW, 1)))
        thread.start()
        until(lambda: old.ask("ping", 0, id=SLOW["id"]).get("error"))
        left["done"], left["undone"] = (begin(one, seconds) for seconds in (0, 60))
        until(lambda: alone(one, "tasks/get", taskId=left["done"]).json()["result"]["status"] == "completed")
        one.kill()
        left["rest"] = list(arriving)
        unread.close()
    thread.join(30)
    return left


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_is_served_by_every_replica(replicas, revision):
    client = Client(replicas, revision)

    for at in (1, 0, 1):
        assert client.call("greet", at, id=at, name="Ann")["result"]["content"][0]["text"] == "Hello, Ann!"
    assert client.delete(1).status_code == 204
    assert [client.post({"id": 5, "method": "ping"}, at).status_code for at in (0, 1)] == [404, 404]


def test_an_unknown_session_is_not_found_anywhere(replicas):
    client = Client(replicas)
    client.headers["Mcp-Session-Id"] = "x" * 32

    assert [client.post({"id": 5, "method": "ping"}, at).status_code for at in (0, 1)] == [404, 404]


def test_a_question_is_answered_through_another_replica(replicas):
    client = Client(replicas, capabilities={"elicitation": {}})
    message = {"id": 2, "method": "tools/call", "params": {"name": "confirm_delete", "arguments": {"filename": "f"}}}

    with client.stream(message, 1) as response:
        arriving = events(response.iter_lines())
        question = next(each for _, each in arriving if each and each.get("method") == "elicitation/create")
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"confirm": True}}}
        assert client.post(answer, 0).status_code == 202
        assert [each["result"]["content"][0]["text"] for _, each in arriving if each] == ["f: accept"]


def test_a_request_is_cancelled_through_another_replica(replicas):
    client = Client(replicas)
    message = {
        "id": 3,
        "method": "tools/call",
        "params": {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}},
    }
    thread = threading.Thread(target=client.post, args=(message, 0))
    thread.start()
    until(lambda: client.ask("ping", 1, id=3).get("error"))  # the id is in use

    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 3}}
    assert client.post(cancelled, 1).status_code == 202
    thread.join(10)

    assert not thread.is_alive()


def test_a_stream_is_resumed_at_another_replica(replicas):
    client = Client(replicas)
    message = {"id": 4, "method": "tools/call", "params": {"name": "test_reconnection"}}
    with client.stream(message, 0) as response:
        ids = [id_ for id_, _ in events(response.iter_lines())]

    with client.listen(1, ids[0]) as response:
        assert [each["id"] for _, each in events(response.iter_lines())] == [4]


def test_notifications_reach_the_clients_of_all_replicas(replicas):
    client, other = Client(replicas, at=0), Client(replicas, at=1)

    with other.listen(0) as response:
        client.call("test_trigger_tool_change", 0)
        assert next(events(response.iter_lines()))[1]["method"] == "notifications/tools/list_changed"


def test_a_task_is_followed_and_cancelled_anywhere(replicas):
    one, two = replicas
    arguments = {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}}
    task = alone(one, "tools/call", **arguments).json()["result"]["taskId"]

    for server in (two, one):
        assert alone(server, "tasks/get", taskId=task).json()["result"]["status"] == "working"
    assert alone(two, "tasks/cancel", taskId=task).status_code == 200
    for server in (one, two):
        assert alone(server, "tasks/get", taskId=task).json()["result"]["status"] == "cancelled"


def test_a_request_state_is_valid_everywhere(replicas):
    one, two = replicas
    params = {"name": "test_input_required_result_elicitation"}
    first = alone(one, "tools/call", **params).json()["result"]
    answers = {key: {"action": "accept", "content": {"name": "Ann"}} for key in first["inputRequests"]}

    second = alone(two, "tools/call", 2, **params, requestState=first["requestState"], inputResponses=answers)

    assert second.json()["result"]["content"][0]["text"] == "Hello, Ann!"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_outlives_its_replica(aftermath, revision):
    client = aftermath[revision]

    assert client.call("greet", 1, name="Ann")["result"]["content"][0]["text"] == "Hello, Ann!"
    assert client.post({"id": 1, "method": "initialize", "params": {}}, 1).json()["error"]  # it is initialized


def test_a_pending_request_of_a_lost_replica_is_answered_once_with_an_error(aftermath):
    assert aftermath["rest"] == []
    for _ in range(2):  # a client may ask for the same events again
        with aftermath["running"].listen(1, aftermath["last seen"]) as response:
            [(_, error)] = events(response.iter_lines())
        assert (error["id"], error["error"]["message"]) == (SLOW["id"], LOST)


def test_stored_events_outlive_their_replica(aftermath):
    first, *rest = aftermath["events"]

    with aftermath["running"].listen(1, first[0]) as response:
        assert list(events(response.iter_lines())) == rest


def test_tasks_of_a_lost_replica_keep_their_result_or_fail(replicas, aftermath):
    done, undone = (
        alone(replicas[1], "tasks/get", taskId=aftermath[name]).json()["result"] for name in ("done", "undone")
    )

    assert done["result"]["content"][0]["text"] == "x: done"
    assert (undone["status"], undone["error"]["message"]) == ("failed", LOST)


def test_a_request_whose_owner_ends_meanwhile_gets_an_error_and_is_not_repeated(aftermath):
    [response] = aftermath["waiting"]

    assert response.status_code in (200, 503)
    if response.status_code == 503:
        assert response.headers["retry-after"]
        assert response.json()["error"]["message"] == LOST
    else:  # it was a stream already
        assert messages(response) == []


def test_a_replica_that_ends_hands_its_sessions_over(mortal):
    one = mortal[0]
    idle, busy = Client(mortal), Client(mortal)
    responses = []
    message = {
        "id": 9,
        "method": "tools/call",
        "params": {"name": "slow_compute", "arguments": {"seconds": 2, "label": "x"}},
    }
    thread = threading.Thread(target=lambda: responses.append(messages(busy.post(message, 0))[-1]))
    thread.start()
    until(lambda: busy.ask("ping", 1, id=9).get("error"))
    one.process.terminate()
    until(lambda: refuses(one))

    assert idle.ask("ping", 1)["result"] == {}
    while (response := busy.post({"id": 2, "method": "ping"}, 1)).status_code == 503:
        time.sleep(0.05)
    thread.join(30)

    assert response.json()["result"] == {}
    assert responses[0]["result"]["content"][0]["text"] == "x: done"
    assert one.process.wait(30) == 0
    assert idle.ask("ping", 1)["result"] == {}


def test_a_hung_replica_loses_its_sessions_and_says_nothing_more(mortal, redis):
    one = mortal[0]
    client = Client(mortal)
    message = {
        "id": 9,
        "method": "tools/call",
        "params": {"name": "slow_compute", "arguments": {"seconds": 1, "label": "x"}},
    }
    with client.stream(message, 0) as response:
        arriving = events(response.iter_lines())
        first, _ = next(arriving)
        one.process.send_signal(signal.SIGSTOP)
        redis.command("EVAL", EXPIRE, "0", client.id)
        assert client.post({"id": 2, "method": "ping"}, 1).status_code == 200
        one.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(httpx2.HTTPError):
            assert list(arriving) == []

    with client.listen(0, first) as response:  # through the replica that was hung
        [(_, error)] = events(response.iter_lines())
    assert error["error"]["message"] == LOST


def test_sessions_and_tasks_of_another_token_look_unknown_everywhere(redis, folder, tmp_path):
    tokens = ["a" * 40, "b" * 40]
    file = tmp_path / "tokens"
    file.write_text("".join(hashlib.sha256(each.encode()).hexdigest() + "\n" for each in tokens))
    with (
        Replica(redis, folder, "--auth-tokens", str(file)) as one,
        Replica(redis, folder, "--auth-tokens", str(file)) as two,
    ):
        client = Client([one, two], token=tokens[0])
        arguments = {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x"}}
        begun = alone(one, "tools/call", token=tokens[0], **arguments)
        task = begun.json()["result"]["taskId"]

        client.headers["Authorization"] = f"Bearer {tokens[1]}"
        for server, at in ((one, 0), (two, 1)):
            assert client.post({"id": 1, "method": "ping"}, at).status_code == 404
            error = alone(server, "tasks/get", taskId=task, token=tokens[1]).json()["error"]
            assert error["message"] == f"Unknown task: {task}"


def test_a_forged_header_of_forwarded_requests_gives_nothing(replicas):
    client = Client(replicas)
    client.headers["TMKB-Forwarded-To"] = "x"

    assert client.post({"id": 1, "method": "ping"}, 0).json()["result"] == {}
    assert client.post({"id": 1, "method": "ping"}, 1).status_code == 421


def test_workers_share_every_revision_without_redis():
    with HttpServer("--server", "everything", "--workers", "2") as server:
        for revision in (REVISIONS[0], REVISIONS[-1]):
            clients = [Client([server], revision) for _ in range(2)]
            for client in clients:
                with client.listen(0) as listening:
                    for number in range(4):  # any worker may accept the connection
                        assert client.call("greet", 0, number, name="Ann")["result"]
                    if revision == REVISIONS[-1]:
                        clients[-1].call("test_trigger_tool_change", 0)
                        method = next(events(listening.iter_lines()))[1]["method"]
                        assert method == "notifications/tools/list_changed"
                assert client.delete(0).status_code == 204
        arguments = {"name": "slow_compute", "arguments": {"seconds": 0, "label": "x"}}
        task = alone(server, "tools/call", **arguments).json()["result"]["taskId"]
        for _ in range(4):
            assert alone(server, "tasks/get", taskId=task).json()["result"]["taskId"] == task
    assert [line for line in server.log if "Traceback" in line] == []


def test_redis_ends_and_returns_empty(replicas, redis):  # the last test: no other one expects an empty Redis
    two = replicas[1]
    client, busy = Client(replicas), Client(replicas)
    responses = []
    message = {**SLOW, "params": {"name": "slow_compute", "arguments": {"seconds": 2, "label": "x"}}}
    thread = threading.Thread(target=lambda: responses.append(messages(busy.post(message, 0))[-1]))
    thread.start()
    until(lambda: busy.ask("ping", 1, id=SLOW["id"]).get("error"))
    redis.kill()

    for at in (0, 1):
        response = client.post({"id": 1, "method": "ping"}, at)
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert "Redis" in response.json()["error"]["message"]
    assert alone(two, "tools/list").status_code == 200
    thread.join(30)
    assert responses[0]["result"]["content"][0]["text"] == "x: done"

    redis.start()
    for at in (0, 1):  # each replica connects again on its own
        until(lambda at=at: client.post({"id": 1, "method": "ping"}, at).status_code == 200)


def refuses(server):
    """Whether nothing listens at the address of ``server``."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


def begin(server, seconds):
    """The id of a new task."""
    arguments = {"name": "slow_compute", "arguments": {"seconds": seconds, "label": "x"}}
    return alone(server, "tools/call", **arguments).json()["result"]["taskId"]
