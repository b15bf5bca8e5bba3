"""The HTTP endpoint without sockets: sessions, streams, resumption and access control."""

import copy
import hashlib
import json

import pytest

from tmkb.server.runtime import Runtime
from tmkb.transport.guard import Guard
from tmkb.transport.http import Endpoint, Request

LOCAL = {"host": "127.0.0.1:8321"}
JSON = {**LOCAL, "content-type": "application/json", "accept": "application/json, text/event-stream"}
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """A client of an endpoint of the server `everything`."""

    def __init__(self, runtimes, quiet, **limits):
        source = runtimes("everything")
        spec = {**source.spec, "server": copy.deepcopy(source.spec["server"])}
        spec["server"]["limits"].update(limits)
        self.endpoint = Endpoint(Runtime(spec, source.provider, quiet(spec)), Guard())
        self.session = {}

    def call(self, verb="POST", headers=None, body=b"", path="/mcp"):
        return self.endpoint.handle(Request(verb, path, JSON if headers is None else headers, body))

    def send(self, method=None, id=None, more=None, **params):
        message = {"jsonrpc": "2.0"} | ({} if id is None else {"id": id}) | ({"method": method} if method else {})
        message |= ({"params": params} if params else {}) | (more or {})
        return self.call(headers={**JSON, **self.session}, body=json.dumps(message).encode())

    def shake(self, revision="2025-11-25", **capabilities):
        answer = self.send("initialize", 0, protocolVersion=revision, capabilities=capabilities)
        self.session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        self.send("notifications/initialized")
        return answer

    def alone(self, method, id=1, headers=None, **params):
        request_headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method} if headers is None else headers
        params["_meta"] = META | params.get("_meta", {})
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return self.call(headers={**JSON, **request_headers}, body=json.dumps(message).encode())

    def change(self, id):
        answer = self.send("tools/call", id, name="test_trigger_tool_change")
        self.work()
        assert json.loads(answer.take())["id"] == id

    def listen(self, **headers):
        return self.call("GET", {**LOCAL, "accept": "text/event-stream", **self.session, **headers})

    def work(self):
        while self.endpoint.due() is not None:
            self.endpoint.work()


@pytest.fixture
def client(runtimes, quiet):
    return Client(runtimes, quiet)


def events(answer):
    """Return the id and the message of each event; skip events without a message."""
    messages = []
    for event in answer.take().decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in event.splitlines())
        if fields.get("data"):
            messages.append((fields.get("id"), json.loads(fields["data"])))
    return messages


def error(answer):
    return answer.status, json.loads(answer.take())["error"]["message"]


def test_a_session_has_an_id_and_can_be_deleted(client):
    answer = client.shake()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert json.loads(answer.take())["result"]["protocolVersion"] == "2025-11-25"
    assert json.loads(client.send("ping", 1).take()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert client.call("DELETE", {**LOCAL, **client.session}).status == 204
    assert error(client.send("ping", 2)) == (404, "There is no such session, or it has expired. Send initialize again")
    assert client.endpoint.runtime.connections == set()


def test_requests_without_a_session_are_rejected(client):
    assert error(client.send("tools/list", 1)) == (
        400,
        "Server not initialized. Send initialized notification first.",
    )
    assert client.endpoint.sessions == {}


def test_a_notification_gets_an_empty_response(client):
    client.shake()
    answer = client.send("notifications/roots/list_changed")

    assert (answer.status, answer.ended, answer.take()) == (202, True, b"")


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ({"path": "/"}, 404, "There is nothing at /. The endpoint is /mcp"),
        ({"path": "/mcp/../etc"}, 404, "There is nothing at /mcp/../etc. The endpoint is /mcp"),
        ({"verb": "PUT"}, 405, "PUT is not served here. Permitted: POST"),
        ({"verb": "GET"}, 405, "GET is not served here. Permitted: POST"),
        ({"headers": {**JSON, "content-type": "text/plain"}}, 415, "The header Content-Type has to be application/json"),
        (
            {"headers": {**JSON, "accept": "text/html"}},
            406,
            "The header Accept has to permit application/json and text/event-stream",
        ),
        ({"body": b"{"}, 400, "Parse error"),
        ({"body": b"[]"}, 400, "Invalid Request"),
        ({"body": None}, 413, "Message too large. Limit: 10485760 bytes"),
        (
            {"headers": {**JSON, "host": "evil.example"}},
            403,
            "This server does not answer to the host evil.example. Permit it with --allow-host",
        ),
        (
            {"headers": {**JSON, "origin": "http://evil.example"}},
            403,
            "Pages of http://evil.example may not call this server. Permit them with --allow-origin",
        ),
        ({"headers": {**JSON, "mcp-session-id": "x"}}, 404, "There is no such session, or it has expired. Send initialize again"),
    ],
)  # fmt: skip
def test_requests_are_rejected_by_their_headers(client, call, status, message):
    answer = client.call(**call)

    assert error(answer) == (status, message)
    assert (status == 405) == ("allow" in answer.headers)


def test_health(client):
    assert client.call("GET", {"host": "anything"}, path="/healthz").take() == b"ok\n"
    assert client.call("HEAD", {}, path="/healthz").status == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8321", "[::1]:99", "[::1]", "LOCALHOST:8321"])
def test_loopback_hosts_are_permitted(client, host):
    headers = {**JSON, "host": host, "origin": f"http://{host}"}

    assert client.call(headers=headers, body=b"{").status == 400


def test_a_session_belongs_to_its_token(runtimes, quiet):
    client = Client(runtimes, quiet)
    digests = [hashlib.sha256(token).hexdigest() for token in (b"one", b"two")]
    client.endpoint.guard = Guard(tokens=digests)
    asking = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    )

    def send(token, more=()):
        return client.call(headers={**JSON, **token, **dict(more)}, body=asking.encode())

    for wrong in ({}, {"authorization": "Bearer three"}, {"authorization": "Basic one"}, {"authorization": "Bearer "}):
        answer = send(wrong)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    session = {"mcp-session-id": send({"authorization": "Bearer one"}).headers["mcp-session-id"]}
    assert send({"authorization": "bearer two"}, session).status == 404
    assert send({"authorization": "Bearer one"}, session).status == 200


def test_the_stream_of_a_slow_call_can_be_resumed(client):
    client.shake()
    answer = client.send("tools/call", 1, name="test_reconnection")
    first = answer.take().decode()
    assert (answer.headers["content-type"], answer.ended) == ("text/event-stream", True)
    assert first.startswith("id: 2-1\ndata: \n\n")
    assert "retry: 200" in first
    client.endpoint.runtime.jobs[0].steps.resume_at = 0
    client.work()
    again = client.listen(**{"last-event-id": "2-1"})

    assert [(id, message["id"]) for id, message in events(again)] == [("2-2", 1)]
    assert again.ended
    assert [id for id, _ in events(client.listen(**{"last-event-id": "2-1"}))] == ["2-2"]  # a second time
    assert error(client.listen(**{"last-event-id": "99-1"})) == (
        404,
        "There is no stream to go on with after the event 99-1",
    )


def test_a_lost_connection_in_a_session_does_not_cancel(client):
    client.shake()
    answer = client.send("tools/call", 1, name="test_tool_with_progress", _meta={"progressToken": "t"})
    (first, _), *_ = events(answer)
    client.endpoint.on_disconnect(answer)
    client.work()
    rest = events(client.listen(**{"last-event-id": first}))

    assert [message.get("id") for _, message in rest][-1] == 1
    assert len(rest) > 1


def test_a_call_continues_in_its_stream_after_an_elicitation(client):
    client.shake(elicitation={})
    answer = client.send("tools/call", 7, name="test_elicitation", arguments={"message": "Who?"})
    ((_, question),) = events(answer)
    assert question["method"] == "elicitation/create"
    answered = client.send(more={"id": question["id"], "result": {"action": "decline"}})

    assert (answered.status, answered.take()) == (202, b"")
    assert [message["id"] for _, message in events(answer)] == [7]
    assert answer.ended


def test_general_messages_wait_for_the_general_stream(client):
    client.shake()
    client.change(1)
    listener = client.listen()
    assert [message["method"] for _, message in events(listener)] == ["notifications/tools/list_changed"]
    client.change(2)
    assert [message["method"] for _, message in events(listener)] == ["notifications/tools/list_changed"]
    other = client.listen()  # replaces the first one; no message is sent twice
    client.change(3)
    assert listener.ended
    assert len(events(other)) == 1


def test_a_cancelled_call_ends_its_stream_without_a_response(client):
    client.shake()
    answer = client.send("tools/call", 1, name="test_slow")
    assert not answer.started
    client.send("notifications/cancelled", requestId=1)

    assert (answer.ended, events(answer)) == (True, [])
    assert client.endpoint.streams == {}


def test_the_id_of_a_pending_request_is_rejected(client):
    client.shake()
    client.send("tools/call", 1, name="test_slow")

    assert error(client.send("ping", 1)) == (400, "A request of this id has not been answered yet")


@pytest.mark.parametrize("other", [{"method": "ping"}, {"method": 5}, {}])
def test_a_message_with_a_pending_id_does_not_affect_the_first_stream(client, other):
    client.shake()
    first = client.send("tools/call", 1, name="test_slow")
    second = client.send(None, 1, other)
    client.work()

    assert second.status == 400
    assert json.loads(second.take())["error"]["code"] == -32600
    assert json.loads(first.take())["result"]["isError"] is False


def test_a_batch_is_answered_in_its_own_response(client):
    client.shake("2025-03-26", roots={})
    asks = client.send("tools/call", 1, name="test_roots")
    ((_, question),) = events(asks)
    batch = [
        {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}},
        {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "test_slow"}},
    ]
    answer = client.call(headers={**JSON, **client.session}, body=json.dumps(batch).encode())
    client.work()

    assert [message["id"] for message in json.loads(answer.take())] == ["slow"]
    assert client.endpoint.streams == {}


@pytest.mark.parametrize(
    ("header", "status"), [("2025-11-25", 200), ("2025-06-18", 200), ("1999-01-01", 400), ("rubbish", 400)]
)
def test_the_revision_header_is_checked(client, header, status):
    client.shake()
    client.session["mcp-protocol-version"] = header

    assert client.send("ping", 1).status == status


def test_an_old_client_may_send_any_version_header(client):
    client.shake("2024-11-05")
    client.session["mcp-protocol-version"] = "rubbish"

    assert client.send("ping", 1).status == 200


def test_a_batch_is_answered_at_once(client):
    client.shake("2025-03-26")
    lines = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, 2)]
    answer = client.call(headers={**JSON, **client.session}, body=json.dumps(lines).encode())

    assert [response["id"] for response in json.loads(answer.take())] == [1, 2]
    assert client.endpoint.streams == {}


def test_sessions_are_limited_and_the_longest_idle_one_ends(runtimes, quiet):
    client = Client(runtimes, quiet, sessions=2)
    sessions = []
    for _ in range(3):
        client.session = {}
        client.shake()
        sessions.append(client.session)
    statuses = []
    for client.session in sessions:
        statuses.append(client.send("ping", 1).status)

    assert statuses == [404, 200, 200]


def test_a_session_expires(runtimes, quiet):
    client = Client(runtimes, quiet, session_seconds=60)
    client.shake()
    next(iter(client.endpoint.sessions.values())).last_used -= 61

    assert client.send("ping", 1).status == 404
    assert client.endpoint.runtime.connections == set()


def test_the_response_of_a_client_that_does_not_read_is_aborted(runtimes, quiet):
    client = Client(runtimes, quiet, stream_bytes=500)
    client.shake()
    listener = client.listen()
    for number in range(1, 20):
        client.change(number)

    assert listener.aborted
    assert listener.unsent <= 500


# Requests that describe themselves


def test_a_completed_request_leaves_no_state(client):
    answer = client.alone("tools/list")

    assert (answer.status, json.loads(answer.take())["result"]["resultType"]) == (200, "complete")
    assert client.endpoint.runtime.connections == set()
    assert client.endpoint.standalone == client.endpoint.streams == client.endpoint.requests == {}


@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code"),
    [
        ("tools/list", {}, {}, 400, -32020),
        ("tools/list", {}, {"mcp-protocol-version": "2026-07-28"}, 400, -32020),
        ("tools/list", {}, {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list"}, 400, -32020),
        ("tools/list", {}, {"mcp-protocol-version": "2026-07-28", "mcp-method": "TOOLS/LIST"}, 400, -32020),
        ("no/such", {}, {"mcp-protocol-version": "2026-07-28", "mcp-method": "no/such"}, 404, -32601),
        ("ping", {}, {"mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}, 404, -32601),
        ("tools/call", {"name": "x"}, None, 400, -32020),
        ("tools/list", {"_meta": {VERSION: "2020-01-01"}}, None, 400, -32020),
        ("tools/list", {"_meta": {VERSION: 5}}, None, 400, -32602),
    ],
)
def test_headers_have_to_match_the_body(client, method, params, headers, status, code):
    answer = client.alone(method, 5, headers, **params)
    body = json.loads(answer.take())

    assert (answer.status, body["error"]["code"], body["id"]) == (status, code, 5)


def named(value, header="mcp-name", **more):
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", header: value, **more}


@pytest.mark.parametrize(
    ("region", "header", "status"),
    [
        ("Hello", "Hello", 200),
        ("Hello", "  Hello\t", 200),
        ("Hello", "=?base64?SGVsbG8=?=", 200),
        ("Hello", "=?base64?SGVsbG8?=", 400),
        ("Hello", "=?base64?SGVs!!!bG8=?=", 400),
        ("Hello", "=?BASE64?SGVsbG8=?=", 400),
        ("Hello", "=?base64?/w==?=", 400),
        ("SGVsbG8=", "SGVsbG8=", 200),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8=", 200),
        ("Grüße", "=?base64?R3LDvMOfZQ==?=", 200),
        ("Hello", "hello", 400),
        ("Hello", None, 400),
        (None, None, 200),
    ],
)
def test_arguments_that_are_repeated_as_headers_have_to_match(client, region, header, status):
    headers = named("test_x_mcp_header") | ({} if header is None else {"mcp-param-region": header})
    arguments = {} if region is None else {"region": region}

    assert client.alone("tools/call", 1, headers, name="test_x_mcp_header", arguments=arguments).status == status


def test_a_subscription_receives_changes_by_other_clients(client):
    stream = client.alone("subscriptions/listen", "s", notifications={"toolsListChanged": True})
    tool = "test_trigger_tool_change"
    client.alone("tools/call", 2, named(tool), name=tool)
    client.work()
    (_, acknowledged), (id_, changed) = events(stream)

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert (id_, changed["method"]) == (None, "notifications/tools/list_changed")
    client.endpoint.shutdown()
    assert [message["id"] for _, message in events(stream)] == ["s"]  # and no cancellation
    assert stream.ended


def test_a_lost_connection_without_a_session_cancels(client):
    answer = client.alone("tools/call", 1, named("test_slow"), name="test_slow")
    client.endpoint.on_disconnect(answer)

    assert client.endpoint.runtime.jobs == []
    assert client.endpoint.standalone == client.endpoint.streams == client.endpoint.requests == {}


def test_the_limit_on_streams_does_not_affect_other_calls(runtimes, quiet):
    client = Client(runtimes, quiet, streams=2)
    listening = [client.alone("subscriptions/listen", id, notifications={"toolsListChanged": True}) for id in (1, 2, 3)]

    assert [each.status for each in listening] == [200, 200, 503]
    assert client.alone("tools/list").status == 200
    tool = "test_tool_with_progress"
    token = {"progressToken": 1}
    assert client.alone("tools/call", 1, named(tool), name=tool, _meta=token).status == 200


def test_a_task_continues_after_its_request(client):
    tool = "slow_compute"
    able = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    arguments = {"seconds": 0, "label": "x"}
    begun = client.alone("tools/call", 1, named(tool), name=tool, arguments=arguments, _meta=able)
    task = json.loads(begun.take())["result"]["taskId"]
    client.work()
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tasks/get", "mcp-name": task}
    seen = json.loads(client.alone("tasks/get", 2, headers, taskId=task, _meta=able).take())["result"]

    assert seen["status"] == "completed"


@pytest.mark.parametrize("header", ["1999-01-01", "rubbish"])
@pytest.mark.parametrize("method", ["ping", "initialize"])
def test_an_unknown_revision_header_without_a_session_is_rejected(client, method, header):
    client.session["mcp-protocol-version"] = header
    answer = client.send(method, 1, protocolVersion="2025-11-25", capabilities={})
    refused = json.loads(answer.take())["error"]

    assert (answer.status, refused["data"]["requested"]) == (400, header)
    assert "2025-11-25" in refused["data"]["supported"]
    assert client.endpoint.runtime.connections == set()


def test_a_known_revision_header_of_a_handshake_is_accepted(client):
    client.session["mcp-protocol-version"] = "2025-11-25"

    assert client.send("initialize", 0, protocolVersion="2025-11-25", capabilities={}).status == 200


def test_a_request_that_describes_itself_has_no_session(client):
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list", "mcp-session-id": "junk"}
    answer = client.alone("tools/list", headers=headers)

    assert (answer.status, "mcp-session-id" in answer.headers) == (200, False)


def test_a_response_without_a_session_is_rejected(client):
    headers = {**JSON, "mcp-protocol-version": "2026-07-28"}
    answer = client.call(headers=headers, body=b'{"jsonrpc":"2.0","id":1,"result":{}}')

    assert error(answer) == (400, "Invalid Request")
    assert client.endpoint.runtime.connections == set()


def test_an_encoded_body_is_rejected(client):
    answer = client.call(headers={**JSON, "content-encoding": "gzip"}, body=b"{}")

    assert answer.status == 415


def test_exposed_headers_are_listed_once(client):
    answer = client.call(headers={**JSON, "origin": "http://localhost"}, body=b"{")

    assert answer.headers["access-control-expose-headers"] == "mcp-session-id, www-authenticate, retry-after"
