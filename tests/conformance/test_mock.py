"""Mocks: a recording as a server, for its own client and for others."""

import json
import time

import pytest

from tests.conformance.conversations import TRANSCRIPTS
from tmkb.conformance import match, replay, targets
from tmkb.conformance.examples import NoExampleError, example
from tmkb.conformance.faults import Faults
from tmkb.conformance.mock import Mock
from tmkb.conformance.transcript import Transcript
from tmkb.errors import DocumentError
from tmkb.protocol import messages
from tmkb.protocol.effects import Disconnect, Send

LEGACY, MODERN = "2025-11-25", "2026-07-28"
INFO = {"name": "recorded", "version": "3"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
HANDSHAKE = {
    "send": {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "first", "version": "1"}},
    },
    "expect": [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "result": {
                "protocolVersion": LEGACY,
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": INFO,
                "instructions": "Be kind.",
            },
        }
    ],
}


def call(id_, tool="add", meta=None, **arguments):
    """A request that calls a tool."""
    params = {"name": tool, "arguments": arguments} | ({} if meta is None else {"_meta": meta})
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def text(id_, said, **more):
    """The response of a tool."""
    return {"jsonrpc": "2.0", "id": id_, "result": {**more, "content": [{"type": "text", "text": said}]}}


def recording(*turns, revision=LEGACY):
    """A transcript with the turns (sent, expected…)."""
    exchanges = [turn if isinstance(turn, dict) else {"send": turn[0], "expect": [*turn[1:]]} for turn in turns]
    head = {"kind": "transcript", "title": "A session", "server": "recorded", "opening": "none"}
    return Transcript("session.yaml", {**head, "revisions": [revision], "exchanges": exchanges})


class Client:
    """A client of a mock in this process; `notes` is what the mock reports."""

    def __init__(self, *turns, revision=LEGACY, **options):
        self.notes = []
        transcripts = [recording(*turns, revision=revision)]
        self.mock = Mock(transcripts, report=self.notes.append, **options)
        self.peer = self.mock.connect()

    def send(self, message):
        """The messages that the mock sends in return."""
        sent = self.mock.handle(self.peer, json.dumps(message).encode())
        while (due := self.mock.due()) is not None:
            time.sleep(due)
            sent += self.mock.work()
        return [json.loads(each.message) for each in sent if isinstance(each, Send)]

    def ask(self, method, id_=1, **params):
        """The only message in return to a request."""
        (message,) = self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return message


DEFERRED = {  # what came later in the conversation comes at once, or one by one instead of in a batch
    "answers/batch", "batch/before-negotiation", "batch/order", "cancellation/batch", "cancellation/ping-meanwhile",
    "progress/batch",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*TRANSCRIPTS} - DEFERRED))
def test_a_recording_is_served_as_it_is(name):
    each = TRANSCRIPTS[name]
    revision = max(each.revisions)
    mock = Mock([each], revision=revision)
    results = replay.replay(each, revision, targets.InProcess(mock))

    assert [result for result in results if result.differences] == []
    assert mock.unmatched == 0


def test_another_client_gets_the_recorded_handshake_in_its_revision():
    client = Client(HANDSHAKE)
    result = client.ask("initialize", 7, protocolVersion="2025-03-26", capabilities={"roots": {}})["result"]

    assert result == {**HANDSHAKE["expect"][0]["result"], "protocolVersion": "2025-03-26"}
    assert client.peer.revision["revision"] == "2025-03-26"


def test_requests_match_by_meaning():
    client = Client((call(1, a=1, b=2, meta={"progressToken": 1, "traceparent": "x"}), text(1, "3")))
    same = {"id": "other", "params": {"arguments": {"b": 2, "a": 1}, "name": "add"}, "method": "tools/call"}

    assert client.send({"jsonrpc": "2.0", **same}) == [text("other", "3")]
    assert client.ask("tools/call", name="add", arguments={"a": 1.0, "b": 2})["error"]["code"] == 404


def test_empty_arguments_are_as_good_as_none():
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}

    assert Client((call(1), text(1, "nothing"))).send(bare) == [text(1, "nothing")]
    assert Client((bare, text(1, "nothing"))).send(call(2)) == [text(2, "nothing")]
    assert Client((call(1, a={}), text(1, "empty"))).send(call(2))[0]["error"]["code"] == 404


def test_metadata_of_vendors_counts_only_if_it_selects_a_response():
    client = Client((call(1, meta={"vendor/x": 1}), text(1, "one")), (call(2, meta={"vendor/x": 2}), text(2, "two")))

    assert client.send(call(5, meta={"vendor/x": 2})) == [text(5, "two")]
    assert client.send(call(6, meta={"vendor/x": 1})) == [text(6, "one")]


def test_the_nth_request_gets_the_nth_response():
    turns = [(call(1), text(1, "one")), (call(2), text(2, "two"))]
    strict, lenient = Client(*turns), Client(*turns, lenient=True)

    assert [client.send(call(3))[0] for client in (strict, strict)] == [text(3, "one"), text(3, "two")]
    assert "2 different responses were recorded" in strict.send(call(3))[0]["error"]["message"]
    assert [lenient.send(call(3))[0] for _ in range(3)] == [text(3, "one"), text(3, "two"), text(3, "two")]
    assert (strict.mock.unmatched, lenient.mock.unmatched) == (1, 0)


def test_equal_responses_are_repeated():
    client = Client((call(1), text(1, "same")), (call(2), text(2, "same")))

    assert [client.send(call(id_))[0] for id_ in range(5)] == [text(id_, "same") for id_ in range(5)]


def test_a_request_that_was_not_recorded_names_the_nearest_one():
    client = Client((call(1, a=1), text(1, "1")), (call(2, "mul", a=5), text(2, "5")))
    error = client.send(call(9, a=5))[0]["error"]

    assert error["data"] == {
        "nearest": "turn 1 of session.yaml",
        "differences": ["params.arguments.a: expected 1, got 5"],
    }
    assert client.notes == [
        "tools/call is not recorded like this. Nearest: turn 1 of session.yaml. params.arguments.a: expected 1, got 5"
    ]
    assert client.ask("tools/list")["error"]["code"] == 404
    assert client.send(call(9, "mull"))[0]["error"]["data"]["nearest"] == "turn 2 of session.yaml"
    assert client.mock.unmatched == 3


def test_lenient_ignores_arguments_and_not_names():
    client = Client((call(1, a=1), text(1, "1")), lenient=True)

    assert client.send(call(9, a=5)) == [text(9, "1")]
    assert "error" in client.send(call(9, "mul", a=1))[0]


def test_a_method_of_an_undeclared_capability_is_unknown_as_on_the_server():
    client = Client(HANDSHAKE)

    assert client.ask("prompts/list")["error"]["code"] == -32601
    assert client.mock.unmatched == 0


def test_progress_comes_with_the_token_of_the_client():
    def progress(token):
        params = {"progressToken": token, "progress": 1}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    client = Client((call(1, meta={"progressToken": "old"}), progress("old"), text(1, "done")))

    assert client.send(call(2, meta={"progressToken": "new"})) == [progress("new"), text(2, "done")]
    assert client.send(call(3)) == [text(3, "done")]


def elicitation(id_):
    """A request of the server."""
    return {"jsonrpc": "2.0", "id": id_, "method": "elicitation/create", "params": FORM}


def answer(id_, action):
    """What the client answers."""
    return {"jsonrpc": "2.0", "id": id_, "result": {"action": action}}


ASKING = [
    (call(1), elicitation("q")),
    (answer("q", "accept"), text(1, "thanks")),
    (call(2), elicitation("r")),
    (answer("r", "decline"), text(2, "pity")),
]


def test_the_answer_of_the_client_selects_what_follows():
    client = Client(*ASKING)

    assert client.send(call(5)) == [elicitation("q")]
    assert client.send(answer("q", "decline")) == [text(5, "pity")]


def test_an_answer_that_was_not_recorded_fails():
    strict, lenient = Client(*ASKING), Client(*ASKING, lenient=True)
    for client in (strict, lenient):
        client.send(call(5))

    (refused,) = strict.send(answer("q", "cancel"))
    assert (refused["id"], refused["error"]["code"], strict.mock.unmatched) == (5, 404, 1)
    assert 'result.action: expected "accept", got "cancel"' in refused["error"]["data"]["differences"]
    assert lenient.send(answer("q", "cancel")) == [text(5, "thanks")]


def test_a_stateless_client_is_asked_in_results():
    client = Client(HANDSHAKE, *ASKING)
    asked = client.ask("tools/call", name="add", arguments={}, _meta=META)["result"]
    (key,) = asked["inputRequests"]
    again = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "accept"}}}
    result = client.ask("tools/call", name="add", arguments={}, _meta=META, **again)["result"]

    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"][key] == {"method": "elicitation/create", "params": FORM}
    assert result == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "thanks"}],
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    }


def test_a_client_with_a_handshake_is_asked_by_requests():
    result = {"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create", "params": FORM}}}
    first, again = call(1, meta=META), call(2, meta=META)
    again["params"] |= {"requestState": "s", "inputResponses": {"k": {"action": "accept"}}}
    client = Client(
        (first, {"jsonrpc": "2.0", "id": 1, "result": {**result, "requestState": "s"}}),
        (again, text(2, "thanks", resultType="complete", _meta={"io.modelcontextprotocol/serverInfo": INFO})),
        revision=MODERN,
    )
    hello = client.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=INFO)["result"]
    (question,) = client.send(call(7))

    assert hello == {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": INFO}
    assert (question["method"], question["params"]) == ("elicitation/create", FORM)
    assert client.send(answer(question["id"], "accept")) == [text(7, "thanks")]


def test_a_recording_with_a_handshake_is_discovered_by_stateless_clients():
    result = Client(HANDSHAKE).ask("server/discover", _meta=META)["result"]

    assert MODERN in result["supportedVersions"]
    assert result["capabilities"] == {"tools": {"listChanged": True}}
    assert (result["instructions"], result["resultType"]) == ("Be kind.", "complete")
    assert result["_meta"] == {"io.modelcontextprotocol/serverInfo": INFO}


def test_errors_get_the_code_of_the_other_era():
    request = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "x:y"}}

    def error(code):
        return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No", "data": {"uri": "x:y"}}}

    old = Client((request, error(-32002)))
    stateless = {**request, "params": {"uri": "x:y", "_meta": META}}
    new = Client((stateless, error(-32602)), revision=MODERN)

    assert old.send(stateless) == [error(-32602)]
    assert new.send(request) == [error(-32002)]


def test_changed_lists_reach_the_streams_of_stateless_clients():
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    client = Client(HANDSHAKE, (call(1), changed, text(1, "done")))
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}, "_meta": META}
    acknowledged = client.ask("subscriptions/listen", "s", **wanted)
    notification, done = client.send(call(2, meta=META))

    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert notification == {**changed, "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "s"}}}
    assert done["result"]["content"] == text(2, "done")["result"]["content"]


def test_captured_values_are_served_and_recognised():
    page = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    next_page = {**page, "id": 2, "params": {"cursor": {"$ref": "next"}}}
    client = Client(
        (page, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": {"$capture": "next"}}}),
        (next_page, {"jsonrpc": "2.0", "id": 2, "result": {"tools": [], "at": {"$any": "integer"}}}),
    )
    cursor = client.ask("tools/list")["result"]["nextCursor"]

    assert client.ask("tools/list", cursor=cursor)["result"]["at"] == 1


def test_a_redacted_argument_matches_any_secret():
    client = Client((call(1, token="Bearer REDACTED-1!"), text(1, "REDACTED-2")))

    assert client.send(call(2, token="Bearer sesame!")) == [text(2, "REDACTED-2")]
    assert "error" in client.send(call(3, token="Basic sesame!"))[0]
    assert client.mock.recording.placeholders == {"REDACTED-2"}


def test_a_question_after_the_response_is_asked_and_what_follows_its_answer_comes():
    question = {"jsonrpc": "2.0", "id": 9, "method": "roots/list"}
    updated = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "1 root"}}
    roots = {"jsonrpc": "2.0", "id": 9, "result": {"roots": [{"uri": "file:///work"}]}}
    turns = [HANDSHAKE, (call(1), text(1, "done"), question), (roots, updated)]
    client = Client(*turns)

    assert client.send(call(4)) == [text(4, "done"), question]
    assert client.send(roots) == [updated]
    assert [each["id"] for each in Client(*turns).send(call(4, meta=META)) if "id" in each] == [4]


def test_capabilities_that_were_not_recorded_are_guessed_from_use():
    client = Client((call(1, meta=META), text(1, "done")), revision=MODERN)

    assert client.ask("server/discover", _meta=META)["result"]["capabilities"] == {"tools": {}}
    client.ask("server/discover", _meta=META)
    assert client.notes == [
        "The capabilities of the server were not recorded. The client gets those that it used: tools."
    ]


def test_a_recording_that_ends_early_says_so():
    client = Client((call(1),))

    assert "the recording ends before" in client.send(call(2))[0]["error"]["message"]


def test_text_that_was_no_message_is_played():
    turn = {"send_text": "{oops", "expect": ["no JSON either"]}
    client = Client(turn)
    (sent,) = client.mock.handle(client.peer, b"{oops")

    assert sent.message == b"no JSON either"


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"1", b"{}", b'{"id":[]}', b"\xff", b"[" * 100_000, b'{"method":5,"id":1}']
)
def test_any_line_is_survived(line):
    client = Client(HANDSHAKE, *ASKING)

    assert all(isinstance(each, Send) for each in client.mock.handle(client.peer, line))


def test_faults():
    entries = [
        {"method": "tools/call", "params": {"arguments": {"a": 1}}, "nth": 2, "error": {"code": 5, "message": "No"}},
        {"params": {"arguments": {"a": 2}}, "wrong_id": True},
        {"params": {"arguments": {"a": 3}}, "duplicate": True},
        {"params": {"arguments": {"a": 4}}, "silence": True},
        {"params": {"arguments": {"a": 5}}, "delay": 0.01},
    ]
    client = Client(*((call(a, a=a), text(a, str(a))) for a in range(1, 6)), faults=Faults(entries))

    def responses(a):
        return client.send(call(9, a=a))

    assert responses(1) == [text(9, "1")]
    assert responses(1) == [{"jsonrpc": "2.0", "id": 9, "error": {"code": 5, "message": "No"}}]
    assert responses(1) == [text(9, "1")]
    assert responses(2)[0]["id"] != 9
    assert responses(3) == [text(9, "3"), text(9, "3")]
    assert responses(4) == []
    assert responses(5) == [text(9, "5")]


def test_a_cancelled_request_gets_no_response_and_others_get_theirs():
    client = Client((call(1, a=1), text(1, "1")), lenient=True, faults=Faults([{"delay": 0.01}]))
    for id_ in (2, 3):
        client.mock.handle(client.peer, json.dumps(call(id_)).encode())
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}

    assert client.send(cancel) == [text(3, "1")]


@pytest.mark.parametrize("fault", [{"truncated": True}, {"not_json": "<html>"}, {"close": True}])
def test_faults_of_the_transport(fault):
    client = Client((call(1), text(1, "1")), faults=Faults([fault]))
    (sent,) = client.mock.handle(client.peer, json.dumps(call(1)).encode())

    if "close" in fault:
        assert sent == Disconnect(client.peer, 1)
    elif "not_json" in fault:
        assert sent.message == b"<html>"
    else:
        whole = messages.encode(text(1, "1"))
        assert whole.startswith(sent.message) and 0 < len(sent.message) < len(whole)


def test_a_file_of_faults_is_checked(tmp_path):
    file = tmp_path / "faults.yaml"
    file.write_text("kind: faults\nfaults:\n  - {method: tools/call, dely: 1}\n")

    with pytest.raises(DocumentError) as caught:
        Faults.read(str(file))
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize(
    "matcher",
    [
        *({"$any": kind} for kind in ("string", "integer", "number", "boolean", "array", "object", "null")),
        *({"$re": text} for text in (r"\d{4}-\d\d", "[^a-z]+x", r"(cat|dog)s?", r"\w+@\w+\.org", "a*", "")),
        {"$subset": {"a": {"$any": "string"}}},
        {"$unordered": [1, {"$any": "object"}]},
        {"$json": {"a": {"$any": "null"}}},
        {"a": {"$ignore": True}, "b": {"$literal": {"$any": 5}}},
        {"$capture": "name", "$any": "integer"},
        [{"$capture": "name"}, {"$ref": "name"}],
    ],
)
@pytest.mark.needs("re2")
def test_examples_match(matcher):
    value = example(matcher, {})

    assert [*match.differences(matcher, value)] == []
    assert example(matcher, {}) == value


@pytest.mark.needs("re2")
def test_an_expression_without_an_example_is_a_problem_of_the_file():
    with pytest.raises(NoExampleError):
        example({"$re": r"a\bb"}, {})
    with pytest.raises(DocumentError):
        Client((call(1), {"jsonrpc": "2.0", "id": 1, "result": {"a": {"$re": r"a\bb"}}}))
