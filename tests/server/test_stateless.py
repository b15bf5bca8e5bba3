"""Revision 2026-07-28 on a real process: each request describes itself, beside handshakes, and is asked in results."""

import json
import os

import pytest

from tests.support.process import Server

pytestmark = pytest.mark.process

VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
KEY = "0123456789abcdef0123456789abcdef"
ACCEPT = {"action": "accept", "content": {"name": "Ann"}}


def meta(capabilities=None, version="2026-07-28", **more):
    """What a request says of its sender."""
    known = {"protocolVersion": version, "clientCapabilities": capabilities or {}, **more}
    return {f"io.modelcontextprotocol/{key}": value for key, value in known.items()}


ABLE = {"elicitation": {}, "sampling": {}, "roots": {}}


class Client(Server):
    """A client that speaks no revision but this."""

    def request(self, method, id=1, /, capabilities=None, said=None, **params):
        return self.ask(method, id, _meta=said or meta(capabilities), **params)

    def call(self, name, arguments=None, /, capabilities=ABLE, id=1, **more):
        return self.request("tools/call", id, capabilities, name=name, arguments=arguments or {}, **more)


@pytest.fixture
def client():
    with Client() as client:
        yield client


@pytest.fixture
def everything():
    with Client("--server", "everything", env={"TMKB_STATE_KEY": KEY}) as client:
        yield client


SERVER_INFO = {
    "io.modelcontextprotocol/serverInfo": {
        "name": "tmkb",
        "version": "0.1.0",
        "description": "Threat Model Knowledge Base - Query authorization security threats",
    }
}


def test_discover(client):
    assert client.request("server/discover")["result"] == {
        "resultType": "complete",
        "ttlMs": 300000,
        "cacheScope": "public",
        "supportedVersions": VERSIONS,
        "capabilities": {"tools": {"listChanged": False}},
        "_meta": SERVER_INFO,
    }


def test_a_list_is_that_of_a_handshake_with_more(client):
    result = client.request("tools/list")["result"]
    with Server() as other:
        other.handshake()
        listed = other.ask("tools/list")["result"]

    assert result == {
        "resultType": "complete",
        "ttlMs": 300000,
        "cacheScope": "public",
        "_meta": SERVER_INFO,
        **listed,
    }


def test_a_query(client):
    result = client.call("tmkb_query", {"context": "background job processing"})["result"]
    refused = client.call("tmkb_query", {"context": "x", "language": "java"})["result"]

    assert (result["resultType"], result["isError"], result["_meta"]) == ("complete", False, SERVER_INFO)
    assert json.loads(result["content"][0]["text"])["patterns"][0]["id"] == "TMKB-AUTH-001"
    assert refused["content"][0]["text"] == "Invalid language 'java'. Supported languages: python"
    assert (refused["resultType"], refused["isError"]) == ("complete", True)


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"])
def test_methods_that_this_revision_lacks(client, method):
    error = client.request(method)["error"]

    assert error == {"code": -32601, "message": f"Method not found: {method}"}


@pytest.mark.parametrize("version", ["2027-01-01", "2025-11-25", "x"])
def test_a_revision_that_is_not_served_so(client, version):
    error = client.request("tools/list", said=meta(version=version))["error"]

    assert error == {
        "code": -32022,
        "message": f"Unsupported protocol version: {version}",
        "data": {"supported": VERSIONS, "requested": version},
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clientCapabilities", None),
        ("clientCapabilities", []),
        ("protocolVersion", None),
        ("protocolVersion", 5),
        ("clientInfo", {"name": "x"}),
        ("logLevel", "loud"),
    ],
)
def test_a_request_that_describes_itself_badly(client, key, value):
    said = {**meta(), f"io.modelcontextprotocol/{key}": value}
    said = {name: one for name, one in said.items() if one is not None}
    error = client.request("tools/list", said=said)["error"]

    assert error["code"] == -32602
    assert f"_meta.io.modelcontextprotocol/{key}" in error["message"]


def test_both_eras_on_one_connection(client):
    early = client.request("tools/list", 1)["result"]
    refused = client.ask("tools/list", 2)["error"]
    shaken = client.handshake("2025-06-18")
    late = client.request("tools/list", 3)["result"]
    legacy = client.ask("tools/list", 4)["result"]

    assert early == late
    assert refused["message"] == "Server not initialized. Send initialized notification first."
    assert shaken["protocolVersion"] == "2025-06-18"
    assert "resultType" not in legacy


def test_an_initialize_that_asks_for_it_gets_a_handshake(client):
    assert client.handshake("2026-07-28")["protocolVersion"] == "2025-11-25"


def test_the_client_is_asked_in_the_result(everything):
    first = everything.call("test_input_required_result_elicitation")["result"]
    last = everything.call("test_input_required_result_elicitation", inputResponses={"user_name": ACCEPT})["result"]

    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["user_name"]["method"] == "elicitation/create"
    assert "ttlMs" not in first
    assert last["content"] == [{"type": "text", "text": "Hello, Ann!"}]


def two_rounds(first, second):
    """A call that asks twice, with its rounds on these clients; the final result."""
    name = "test_input_required_result_multi_round"
    one = first.call(name)["result"]
    two = second.call(name, inputResponses={"step1": ACCEPT}, requestState=one["requestState"])["result"]
    assert two["resultType"] == "input_required"
    assert list(two["inputRequests"]) == ["step2"]
    assert two["requestState"] != one["requestState"]
    blue = {"action": "accept", "content": {"color": "blue"}}
    return first.call(name, inputResponses={"step2": blue}, requestState=two["requestState"])["result"]


def test_the_client_stores_earlier_answers(everything):
    assert two_rounds(everything, everything)["content"][0]["text"] == "Ann likes blue."


def test_another_process_with_the_same_key_continues(everything):
    with Client("--server", "everything", env={"TMKB_STATE_KEY": KEY}) as other:
        assert two_rounds(everything, other)["content"][0]["text"] == "Ann likes blue."


def test_another_process_with_a_key_of_its_own_does_not(everything):
    state = everything.call("test_input_required_result_request_state")["result"]["requestState"]
    with Client("--server", "everything") as other:
        error = other.call("test_input_required_result_request_state", requestState=state)["error"]

    assert error == {"code": -32602, "message": "Invalid params: requestState is not valid, or has expired"}


def test_a_changed_state_never_completes_a_call(everything):
    name = "test_input_required_result_tampered_state"
    state = everything.call(name)["result"]["requestState"]
    answer = {"confirm": {"action": "accept", "content": {"ok": True}}}
    everything.send(
        *(
            {
                "jsonrpc": "2.0",
                "id": bit,
                "method": "tools/call",
                "params": {
                    "name": name,
                    "_meta": meta(ABLE),
                    "inputResponses": answer,
                    "requestState": flipped(state, bit),
                },
            }
            for bit in range(len(state) * 8)
        )
    )
    errors = [everything.read()["error"]["code"] for _ in range(len(state) * 8)]

    assert set(errors) == {-32602}
    assert (
        everything.call(name, inputResponses=answer, requestState=state)["result"]["content"][0]["text"] == "state-ok"
    )


def flipped(text, bit):
    changed = bytearray(text.encode())
    changed[bit // 8] ^= 1 << bit % 8
    return changed.decode("latin-1")


def test_a_state_is_good_for_its_request_only(everything):
    state = everything.call("test_input_required_result_request_state")["result"]["requestState"]
    error = everything.call("test_input_required_result_tampered_state", requestState=state)["error"]

    assert error["code"] == -32602


@pytest.mark.parametrize("answers", [None, [], "x", {"user_name": 12345}, {"user_name": {"action": "maybe"}}])
def test_answers_that_are_none(everything, answers):
    answered = everything.call("test_input_required_result_elicitation", inputResponses=answers)

    assert answered["error"]["code"] == -32602


def test_a_missing_answer_is_requested_again_and_an_unknown_one_ignored(everything):
    name = "test_input_required_result_elicitation"
    again = everything.call(name, inputResponses={"wrong_key": ACCEPT})["result"]
    done = everything.call(name, inputResponses={"user_name": ACCEPT, "a": 1, "b": ACCEPT})["result"]

    assert again["resultType"] == "input_required"
    assert done["content"][0]["text"] == "Hello, Ann!"


def test_only_questions_with_a_declared_capability_are_sent(everything):
    name = "test_input_required_result_capabilities"
    result = everything.call(name, capabilities={"sampling": {}})["result"]

    assert list(result["inputRequests"]) == ["sample"]
    assert everything.call(name, capabilities={})["result"]["content"][0]["text"] == "done"


def test_questions_need_declared_capabilities(everything):
    for name, needed in (("test_missing_capability", "sampling"), ("test_roots", "roots")):
        error = everything.call(name, capabilities={"elicitation": {}})["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {needed: {}}})


def test_several_questions_at_once(everything):
    name = "test_input_required_result_multiple_inputs"
    asked = everything.call(name)["result"]
    answers = {
        "user_name": ACCEPT,
        "greeting": {"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"},
        "client_roots": {"roots": [{"uri": "file:///a"}]},
    }
    some = everything.call(name, inputResponses={"user_name": ACCEPT}, requestState=asked["requestState"])["result"]
    done = everything.call(name, inputResponses=answers, requestState=asked["requestState"])["result"]

    assert {key: each["method"] for key, each in asked["inputRequests"].items()} == {
        "user_name": "elicitation/create",
        "greeting": "sampling/createMessage",
        "client_roots": "roots/list",
    }
    assert list(some["inputRequests"]) == ["greeting", "client_roots"]
    assert done["content"][0]["text"] == "All inputs received."


def test_prompts_and_resources_ask_too(everything):
    name = "test_input_required_result_prompt"
    answer = {"user_context": {"action": "accept", "content": {"context": "a test"}}}
    asked = everything.request("prompts/get", 1, ABLE, name=name)["result"]
    prompt = everything.request("prompts/get", 2, ABLE, name=name, inputResponses=answer)["result"]
    uri = "test://user-text"
    text = {"user": {"action": "accept", "content": {"text": "mine"}}}
    resource = everything.request("resources/read", 3, ABLE, uri=uri, inputResponses=text)["result"]

    assert (asked["resultType"], list(asked["inputRequests"])) == ("input_required", ["user_context"])
    assert prompt["messages"][0]["content"]["text"] == "Use this context: a test"
    assert resource["contents"][0]["text"] == "mine"
    assert everything.request("resources/read", 4, ABLE, uri=uri)["result"]["resultType"] == "input_required"


def test_messages_before_an_answer_are_not_sent_twice(everything):
    name = "test_input_required_result_multi_round"
    loud = meta(ABLE, logLevel="info")
    said = []

    def call(id, **more):
        everything.send(
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "_meta": loud, **more}}
        )
        while "id" not in (message := everything.read()):
            said.append(message["params"]["data"])
        return message["result"]

    state = call(1)["requestState"]
    call(2, inputResponses={"step1": ACCEPT}, requestState=state)

    assert said == ["Asking for a name", "Asking for a colour"]


def test_log_messages_are_for_who_asks_for_them(everything):
    everything.request("tools/call", 1, name="test_logging_tool")  # would have read the notification instead
    said = meta(logLevel="info")
    everything.send(
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "test_logging_tool", "_meta": said}}
    )

    assert [everything.read().get("method") for _ in range(2)] == ["notifications/message", None]


def test_a_stream_of_changes(everything):
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}
    acknowledged = everything.request("subscriptions/listen", "s", notifications=wanted)
    key = "io.modelcontextprotocol/subscriptionId"
    everything.send(
        *(
            {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "_meta": meta()}}
            for name in ("test_trigger_tool_change", "test_trigger_prompt_change", "test_trigger_resource_change")
        )
    )
    heard, answered = [], 0
    while answered < 3:
        message = everything.read()
        answered += "id" in message
        heard += [message] if "method" in message else []
    rest, status = everything.end()

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"_meta": {key: "s"}, "notifications": wanted}
    assert [(each["method"], each["params"]["_meta"]) for each in heard] == [
        ("notifications/tools/list_changed", {key: "s"}),
        ("notifications/resources/updated", {key: "s"}),
    ]
    ended, cancelled = rest
    assert (ended["id"], ended["result"]["resultType"], ended["result"]["_meta"][key]) == ("s", "complete", "s")
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "s")
    assert status == 0


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25"])
def test_a_notification_is_never_answered(client, version):
    client.send(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1, "_meta": meta(version=version)},
        }
    )

    assert client.end() == ([], 0)


def test_a_result_with_a_users_answers_is_not_cacheable(everything):
    text = {"user": {"action": "accept", "content": {"text": "mine"}}}
    uri = "test://user-text"
    result = everything.request("resources/read", 1, ABLE, uri=uri, inputResponses=text)["result"]

    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_a_stream_that_is_cancelled_is_silent(everything):
    everything.request("subscriptions/listen", "s", notifications={"toolsListChanged": True})
    everything.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})

    assert "result" in everything.call("test_trigger_tool_change")
    assert everything.end() == ([], 0)


def test_a_stream_omits_undeclared_capabilities(client):
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["test://a"]}

    assert client.request("subscriptions/listen", notifications=wanted)["params"]["notifications"] == {}


def test_a_slow_call_is_cancelled_without_any_handshake(everything):
    everything.send(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_slow", "_meta": meta()}}
    )
    everything.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    assert everything.call("test_simple_text", id=2)["id"] == 2
    assert everything.end() == ([], 0)


@pytest.mark.parametrize("keys", ["new,old", "file", "new"])
def test_keys_rotate(tmp_path, everything, keys):
    name = "test_input_required_result_request_state"
    state = everything.call(name)["result"]["requestState"]
    new, file = "n" * 32, tmp_path / "keys"
    file.write_text(f"{new}\n{KEY}\n")
    variables = {
        "new,old": {"TMKB_STATE_KEY": f"{new},{KEY}"},
        "file": {"TMKB_STATE_KEY_FILE": str(file)},
        "new": {"TMKB_STATE_KEY": new},
    }

    with Client("--server", "everything", env=variables[keys]) as other:
        assert ("result" in other.call(name, requestState=state)) is (keys != "new")


def test_a_short_key_is_refused():
    with Server(env={"TMKB_STATE_KEY": "short"}) as server:
        assert server.wait() == 2
        assert server.log == [
            "TMKB_STATE_KEY: A key of 5 characters can be guessed. Use at least 32 random characters."
        ]


def test_a_server_of_this_revision_alone(overlay):
    folder = overlay(servers__tmkb__server='kind: server\nextends: packaged\nrevisions: ["2026-07-28"]\n')
    with Client("--schemas", folder, env={**os.environ}) as client:
        error = client.ask("initialize", protocolVersion="2025-11-25", capabilities={})["error"]
        assert error["data"]["supported"] == ["2026-07-28"]
        assert "tools" in client.request("tools/list")["result"]


def test_a_request_state_contains_only_answers_to_questions(everything):
    name = "test_input_required_result_multi_round"
    more = {"step1": ACCEPT, "other": "x" * 100_000}
    result = everything.call(name, inputResponses=more)["result"]

    assert list(result["inputRequests"]) == ["step2"]
    assert len(result["requestState"]) < 1000
