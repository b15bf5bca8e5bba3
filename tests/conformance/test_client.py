"""The client of any server, over a target that answers from a script, and over our own engine."""

import json

import pytest

from tmkb.conformance.client import Client, ClientError
from tmkb.conformance.targets import InProcess, Target

HELLO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}


class Scripted(Target):
    """A server that answers each message by a function; it notes what it received."""

    ordered, timeout = True, 30.0

    def __init__(self, answer):
        self.answer, self.received, self.timeouts = answer, [], []

    def exchange(self, line, count, pending=None):
        message = json.loads(line)
        self.received.append(message)
        self.timeouts.append(self.timeout)
        messages = [
            each if not isinstance(each, dict) or "jsonrpc" in each else {"jsonrpc": "2.0", "id": message["id"], **each}
            for each in self.answer(message)
        ]
        for each in messages:
            self.on_receive(each)
        return messages

    def close(self):
        return []

    def notes(self):
        return ["The server: exit status 3"]


def legacy(answer=lambda message: []):
    """A server with a handshake, which takes the offered revision."""

    def respond(message):
        if message.get("method") == "server/discover":
            return [{"error": {"code": -32601, "message": "Method not found"}}]
        if message.get("method") == "initialize":
            return [{"result": {"protocolVersion": message["params"]["protocolVersion"], **HELLO}}]
        return answer(message) if "id" in message else []

    return Scripted(respond)


def opened(target, spec):
    client = Client(target, spec)
    client.open()
    return client


def test_all_revisions_are_negotiated(runtimes, spec):
    revisions = [None, *spec["revisions"]]
    clients = [Client(InProcess(runtimes("everything")), spec, revision) for revision in revisions]

    assert [client.open().revision for client in clients] == ["2026-07-28", *spec["revisions"]]
    for client in clients:
        assert client.opened.server_info["name"] == "everything"
        names = [tool["name"] for tool in client.every(client.method("list_tools"), "tools")]
        assert "test_simple_text" in names and len(names) == len(set(names)) > 20
        result = client.request("tools/call", {"name": "test_simple_text"})
        assert result["content"][0]["type"] == "text"
        assert client.close() == []


def test_a_server_that_does_not_know_discovery_gets_a_handshake(spec):
    target = legacy()
    client = opened(target, spec)

    assert client.opened.revision == "2025-11-25"
    assert client.opened.capabilities == {"tools": {}}
    assert [message["method"] for message in target.received] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
    ]
    assert target.received[1]["params"]["clientInfo"]["name"] == "tmkb"
    assert target.timeouts == [3.0, 30.0, 30.0]  # an older server may ignore the first request


def test_a_server_that_names_its_revisions_is_offered_one_of_them(spec):
    def respond(message):
        if message["method"] == "server/discover":
            return [{"error": {"code": -32022, "message": "No", "data": {"supported": ["2025-03-26"]}}}]
        return [{"result": {"protocolVersion": "2025-03-26", **HELLO}}] if "id" in message else []

    assert opened(Scripted(respond), spec).opened.revision == "2025-03-26"


def test_a_server_that_starts_slowly_may_answer_the_discovery_late(spec):
    discovery = {"supportedVersions": ["2026-07-28", "2025-11-25"], "capabilities": {"tools": {}}}
    late = {"jsonrpc": "2.0", "id": 1, "result": discovery}
    refusal = {"error": {"code": -32601, "message": "No"}}

    def respond(message):
        return {"server/discover": [], "initialize": [late, refusal], "x": [{"result": {}}]}[message["method"]]

    target = Scripted(respond)
    client = opened(target, spec)

    assert client.opened.revision == "2026-07-28"
    assert client.request("x") == {}
    assert "_meta" in target.received[-1]["params"]


def test_only_the_chosen_revision_is_offered(spec):
    target = Scripted(lambda message: [{"result": {"protocolVersion": "2024-11-05", **HELLO}}])

    with pytest.raises(ClientError, match='answers initialize with the revision "2024-11-05"; offered: 2025-06-18'):
        Client(target, spec, "2025-06-18").open()
    assert len(target.received) == 1


def test_the_client_declares_what_it_is_told_to(spec):
    declared = {"roots": {}}
    target = legacy()
    Client(target, spec, capabilities=declared).open()

    first, second = [each["params"] for each in target.received if "id" in each]
    assert first["_meta"]["io.modelcontextprotocol/clientCapabilities"] == declared
    assert second["capabilities"] == declared


def test_an_unknown_revision_is_refused(spec):
    with pytest.raises(ClientError, match=r"Unknown revision 2020-01-01. Known: 2024-11-05, .*2026-07-28\."):
        Client(legacy(), spec, "2020-01-01").open()


def test_an_error_has_its_code_and_data(spec):
    error = {"code": -32602, "message": "No such tool", "data": {"near": "x"}}
    client = opened(legacy(lambda message: [{"error": error}]), spec)

    with pytest.raises(ClientError) as caught:
        client.request("tools/call", {"name": "y"})
    assert (caught.value.message, caught.value.code, caught.value.data) == ("No such tool", -32602, {"near": "x"})


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([], r"^No response to x\.$"),
        (
            [{"jsonrpc": "2.0", "id": None, "error": {"code": 1}}],
            r'It sent an error without the id of a request: {"code":1}$',
        ),
        (["Listening"], r'^No response to x. It sent "Listening", which is not a JSON-RPC message\.$'),
        ([{"result": [1]}], r"^The response to x has no result that is an object: .*\[1\]"),
        ([{}], "has no result"),
        ([{"error": "no"}], "has no result"),
        ([[]], "No response to x"),
        ([None, 1, [2], {"jsonrpc": "2.0"}], "It sent null, .* It sent 1, .* It sent 2"),
    ],
)
def test_wrong_answers_become_sentences(spec, answers, sentence):
    client = opened(legacy(lambda message: answers), spec)

    with pytest.raises(ClientError, match=sentence) as caught:
        client.request("x")
    assert caught.value.code is None


def test_a_batch_contains_the_response(spec):
    batch = [[{"jsonrpc": "2.0", "method": "n"}, {"jsonrpc": "2.0", "id": 3, "result": {"a": 1}}]]

    assert opened(legacy(lambda message: batch), spec).request("x") == {"a": 1}


def test_requests_of_the_server_are_declined(spec):
    questions = [
        {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}},
        {"jsonrpc": "2.0", "id": 7, "method": "ping"},
    ]

    def answer(message):
        if message.get("method") == "ask":
            return questions
        return [{"jsonrpc": "2.0", "id": 3, "result": {"done": True}}] if message.get("id") == 7 else []

    target = legacy(answer)

    assert opened(target, spec).request("ask") == {"done": True}
    declined, pong = target.received[-2:]
    assert (declined["id"], declined["error"]["code"]) == ("q", -32601)
    assert "does not support elicitation/create" in declined["error"]["message"]
    assert pong == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_server_that_asks_without_end_is_left(spec):
    question = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
    target = legacy(lambda message: [question])

    with pytest.raises(ClientError, match="No response to x"):
        opened(target, spec).request("x")
    assert len(target.received) < 200


def test_all_pages_are_read(spec):
    pages = {None: ([{"name": "a"}], "2"), "2": ([], "3"), "3": ([{"name": "b"}], None)}

    def answer(message):
        entries, cursor = pages[message.get("params", {}).get("cursor")]
        return [{"result": {"tools": entries, **({} if cursor is None else {"nextCursor": cursor})}}]

    assert opened(legacy(answer), spec).every("tools/list", "tools") == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ({"tools": [], "nextCursor": "same"}, 'the list has no end: nextCursor "same" came twice'),
        ({"tools": [], "nextCursor": 1}, "nextCursor is not a string: 1"),
        ({"tools": {}}, "the result has no list tools"),
        ({"tools": [1]}, "an entry of tools is not an object"),
    ],
)
def test_a_wrong_list_is_refused(spec, result, sentence):
    client = opened(legacy(lambda message: [{"result": result}]), spec)

    with pytest.raises(ClientError, match=sentence):
        client.every("tools/list", "tools")


def test_notes_of_the_target_are_returned_once_and_again(spec):
    with opened(legacy(), spec) as client:
        pass

    assert client.close() == client.close() == ["The server: exit status 3"]


def test_messages_of_both_sides_can_be_heard(spec):
    target, heard = legacy(lambda message: [{"result": {}}]), []
    client = opened(target, spec)
    client.on_send = lambda message: heard.append(("sent", message.get("method")))
    target.on_receive = lambda message: heard.append(("received", message.get("method")))

    client.request("x")

    assert heard == [("sent", "x"), ("received", None)]


def test_metadata_that_is_no_object_is_sent_as_it_is(runtimes, spec):
    with Client(InProcess(runtimes("everything")), spec, "2026-07-28") as client:
        client.open()
        with pytest.raises(ClientError) as refused:
            client.request("tools/list", {"_meta": 5})
    assert refused.value.code == -32602
