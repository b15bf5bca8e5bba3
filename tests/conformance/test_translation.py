"""Recordings that are replayed under another revision, on servers of this project."""

import json

import pytest

from tmkb.conformance import replay, targets, transcript, translation

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}
REQUESTS = [
    ("tools/list", {}),
    ("tools/call", {"name": "test_simple_text"}),
    ("tools/call", {"name": "test_error_handling"}),
    ("tools/call", {"name": "test_structured_output", "arguments": {"city": "Oslo", "degrees": 3.5}}),
    ("tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}),
    ("tools/call", {"name": "nope"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "test_simple_prompt"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "test://static-text"}),
    ("resources/read", {"uri": "test://nope"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": {"name": "arg1", "value": ""}}),
]  # fmt: skip


def turns(revision, requests):
    """The turns of a client that sends these requests under a revision, without expectations."""
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    handshake = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    meta = META if revision == STATELESS else {}
    sent = [] if meta else handshake
    if meta:
        sent.append({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": META}})
    for id_, (method, params) in enumerate(requests, 1):
        whole = {**params, "_meta": {**meta, **params.get("_meta", {})}} if meta else params
        sent.append({"jsonrpc": "2.0", "id": id_, "method": method, **({"params": whole} if whole else {})})
    return [{"send": each, "expect": []} for each in sent]


@pytest.fixture
def recorded(tmp_path, runtimes):
    """A function that records requests under a revision with the server everything; returns the transcript."""

    def record(revision, requests):
        value = {
            "kind": "transcript",
            "title": "A made-up conversation",
            "server": "everything",
            "revisions": [revision],
            "recorded": {"over": "stdio"},
            "opening": "none",
            "exchanges": turns(revision, requests),
        }
        file = tmp_path / "one.transcript.yaml"
        file.write_text(json.dumps(value))
        each = transcript.read(str(file))
        results = list(replay.replay(each, revision, targets.InProcess(runtimes("everything")), record=True))
        for turn, result in zip(value["exchanges"], results, strict=True):
            turn["expect"] = result.actual
        file.write_text(json.dumps(value))
        return transcript.read(str(file))

    return record


@pytest.fixture
def translated(runtimes):
    """A function that replays a recording under another revision; returns the translation and the differences."""

    def run(each, revision):
        runtime = runtimes("everything")
        found = translation.translate(each, runtime.spec, revision)
        results = list(replay.replay_translated(each, found, targets.InProcess(runtime)))
        return found, {result.number: result.differences for result in results if result.differences}

    return run


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
def test_a_recording_replays_under_every_revision(recorded, translated, source, target):
    found, differences = translated(recorded(source, REQUESTS), target)

    assert differences == {}
    skipped = [turn.skipped for turn in found.turns if turn.skipped]
    crosses = (source == STATELESS) != (target == STATELESS)
    assert len(skipped) == (0 if not crosses else 1 if source == STATELESS else 2)


def test_a_difference_is_noticed_in_the_other_era(recorded, translated):
    each = recorded("2025-11-25", REQUESTS[:2])
    each.value["exchanges"][3]["expect"][0]["result"]["content"][0]["text"] = "other"

    _, differences = translated(each, STATELESS)

    assert [(number, sentences[0][:30]) for number, sentences in differences.items()] == [
        (4, "[0].result.content[0].text: ex")
    ]


def test_requests_carry_the_name_and_the_capabilities_of_the_recorded_client(recorded, spec):
    found = translation.translate(recorded("2025-11-25", REQUESTS[:1]), spec, STATELESS)

    assert json.loads(found.opening[0].line)["method"] == "server/discover"
    assert json.loads(found.turns[2].line)["params"]["_meta"] == META


def test_a_handshake_has_the_name_and_the_capabilities_of_the_recorded_client(recorded, spec):
    found = translation.translate(recorded(STATELESS, REQUESTS[:1]), spec, "2025-06-18")
    hello, initialized = [json.loads(turn.line) for turn in found.opening]

    assert hello["params"] == {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": META["io.modelcontextprotocol/clientInfo"],
    }
    assert initialized["method"] == "notifications/initialized"
    assert json.loads(found.turns[1].line) == {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def test_what_the_other_revision_lacks_is_named(recorded, translated):
    requests = [("ping", {}), ("logging/setLevel", {"level": "error"}), ("tools/call", {"name": "test_log_levels"})]
    found, differences = translated(recorded("2025-11-25", requests), STATELESS)

    assert found.remarks == [
        "recorded under 2025-11-25, translated to 2026-07-28",
        "turn 1 not sent: 2026-07-28 has no initialize",
        "turn 2 not sent: 2026-07-28 has no notifications/initialized",
        "turn 3 not sent: 2026-07-28 has no ping",
        "turn 4 not sent: 2026-07-28 has no logging/setLevel",
    ]
    assert differences == {}  # the level is in the request


def test_questions_of_the_server_are_not_asked_in_the_other_era(tmp_path, spec):
    send = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    expect = [
        [{"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}],
        [{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}],
        [],
        [],
    ]
    exchanges = [{"send": one, "expect": other} for one, other in zip(send, expect, strict=True)]
    value = {"revisions": ["2025-11-25"], "recorded": {}, "opening": "none", "exchanges": exchanges}
    found = translation.translate(transcript.Transcript("x.yaml", value), spec, STATELESS)

    assert [turn.skipped for turn in found.turns] == [
        "under 2026-07-28, a server asks its client in another way",
        "under 2026-07-28, a server asks its client in another way",
        "the request that it refers to is not sent",
        "",
    ]


# --- What a server speaks


def results(number, *actual):
    return [replay.Result(number, "", list(actual), ["different"])]


def recording(revision, send, expect):
    exchanges = [{"send": send, "expect": [expect]}]
    return transcript.Transcript(
        "x.yaml", {"revisions": [revision], "recorded": {}, "opening": "none", "exchanges": exchanges}
    )


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}


@pytest.mark.parametrize(
    ("revision", "sent", "answer", "other"),
    [
        ("2025-11-25", HELLO, {"result": {"protocolVersion": "2025-06-18"}}, "2025-06-18"),
        ("2025-11-25", HELLO, {"result": {"protocolVersion": "2025-11-25", "serverInfo": {}}}, None),
        ("2025-11-25", HELLO, {"result": {"protocolVersion": "1999-01-01"}}, None),
        ("2025-11-25", HELLO, {"error": {"code": -32601, "message": ""}}, STATELESS),
        ("2025-11-25", HELLO, {"error": {"code": 1, "data": {"supported": ["2024-11-05", "x", 1]}}}, "2024-11-05"),
        (STATELESS, LIST, {"error": {"code": -32601, "message": ""}}, "2025-11-25"),
        (STATELESS, LIST, {"error": {"code": -32022, "data": {"supported": [[], "2025-03-26"]}}}, "2025-03-26"),
        (STATELESS, LIST, {"result": {"tools": []}}, "2025-11-25"),
        (STATELESS, LIST, {"result": {"tools": [], "resultType": "complete", "ttlMs": 1, "cacheScope": "public"}}, None),
        (STATELESS, LIST, {"result": 1}, None),
    ],
)  # fmt: skip
def test_the_first_answer_tells_what_a_server_speaks(spec, revision, sent, answer, other):
    each = recording(revision, sent, {"jsonrpc": "2.0", "id": 1, "result": {}})

    assert translation.spoken(each, revision, results(1, {"jsonrpc": "2.0", "id": 1, **answer}), spec) == other


def test_a_server_that_answers_as_recorded_speaks_the_revision(spec):
    each = recording(STATELESS, LIST, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}})

    assert (
        translation.spoken(each, STATELESS, results(1, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}), spec) is None
    )
    assert translation.spoken(each, STATELESS, results(1), spec) is None
    assert translation.spoken(each, STATELESS, results(9), spec) is None
