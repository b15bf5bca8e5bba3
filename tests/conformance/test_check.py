"""What `tmkb check` demands of a server: our own engine meets it, and seeded deviations are found."""

import json

import pytest

from tmkb.conformance import check, check_report, checks, peers, targets
from tmkb.conformance.session import FAIL, NOT_APPLICABLE, NOT_COVERED, PASS

WANTED = checks.read()
REVISIONS = list(WANTED.revisions)
HANDSHAKE, REQUEST = "2025-11-25", "2026-07-28"
ARGUMENTS = {
    "tmkb_query": {"context": "export of invoices"},
    "test_simple_text": {},
    "test_structured_output": {"city": "Oslo", "degrees": 3},
}
LINKS = {name: speech["specification"] for name, speech in WANTED.revisions.items()}


class Local(peers.Peer):
    """A connection to a runtime in this process."""

    transport = peers.STDIO

    def __init__(self, runtime, timeout):
        self.lines = []
        self.target = targets.InProcess(runtime, timeout)
        self.waiting = []

    def send(self, body, done, headers=None, verb=""):
        messages = self.target.exchange(body, 0)
        self.lines += [json.dumps(each) for each in messages]
        messages, self.waiting = [*self.waiting, *messages], []
        if done is None:
            self.waiting = messages
            return peers.Reply()
        return peers.Reply(messages, fault="" if any(map(done, messages)) else "no response")

    def end(self):
        self.target.close()
        return True

    def close(self):
        return ""


class Deviating(Local):
    """A connection to our engine whose messages are replaced by those of ``change(sent, message)``."""

    change = None

    def send(self, body, done, headers=None, verb=""):
        before = len(self.lines)
        reply = super().send(body, done, headers, verb)
        if isinstance(sent := json.loads(body), dict):
            reply.messages = [new for each in reply.messages for new in self.change(sent, each)]
        self.lines[before:] = [each if isinstance(each, str) else json.dumps(each) for each in reply.messages]
        if done is not None and not any(map(done, reply.messages)):
            reply.fault = "no response"
        return reply


def outcomes(runtime, revision, change=None, variables=None, starts=None):
    """Requirement id → outcome. ``starts`` gets an element for each connection."""

    def connect(_):
        if starts is not None:
            starts.append(revision)
        peer = Local(runtime, 5.0) if change is None else Deviating(runtime, 5.0)
        peer.change = change
        return peer

    (spoken,) = check.spoken(WANTED, connect, [revision])
    found = check.check(WANTED, connect, spoken, {"latest": HANDSHAKE, **(variables or {})})
    return {each.requirement.id: each for each in found}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("server", "call"),
    [("tmkb", "tmkb_query"), ("everything", "test_simple_text"), ("everything", "test_structured_output")],
)
def test_our_engine_meets_every_requirement(runtimes, server, call, revision):
    found = outcomes(runtimes(server), revision, variables={"tool": call, "arguments": ARGUMENTS[call]})

    assert {id_: (each.reasons, each.sent, each.received) for id_, each in found.items() if each.status == FAIL} == {}


def test_every_requirement_over_stdio_is_covered_by_a_server_that_uses_all_features(runtimes):
    call = {"tool": "test_structured_output", "arguments": ARGUMENTS["test_structured_output"]}
    found = [outcomes(runtimes("everything"), revision, variables=call) for revision in REVISIONS]
    passed = {id_ for each in found for id_, outcome in each.items() if outcome.status == PASS}
    over_stdio = {each.id for each in WANTED.requirements if each.value.get("transports") != ["http"]}

    # Its first prompt without arguments asks the user, and the client of the checks has none.
    assert {id_ for id_ in over_stdio - passed if not id_.endswith(".undeclared")} == {"prompts.get"}


def replace(response, **changes):
    """A copy of a response with other members; a value of None removes one."""
    return {key: value for key, value in {**response, **changes}.items() if value is not None}


def on(method, change):
    """Change the responses to requests with one method."""
    return lambda sent, each: [change(each) if sent.get("method") == method and "id" in each else each]


def item(key, **changes):
    """Change the first element of a list in a result."""

    def change(response):
        if "result" not in response:
            return response
        first, *rest = response["result"][key]
        return {**response, "result": {**response["result"], key: [replace(first, **changes), *rest]}}

    return change


def result(**changes):
    """Change members of a result."""
    return lambda each: {**each, "result": replace(each["result"], **changes)} if "result" in each else each


def error(code):
    """Change the code of an error."""
    return lambda each: {**each, "error": {**each["error"], "code": code}} if "error" in each else each


DEVIATIONS = {
    "base.response_id": lambda sent, each: [{**each, "id": 7.5} if sent.get("id") == "string-id: 7" else each],
    "base.error_form": on("tmkb-check/unknown", error("-32601")),
    "base.unknown_method": on("tmkb-check/unknown", error(-32602)),
    "base.notification_silence": lambda sent, each: [each, {"jsonrpc": "2.0", "id": "x", "result": {}}],
    "base.message_form": on("tools/list", lambda each: replace(each, jsonrpc=None)),
    "base.server_requests": lambda sent, each: [{"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, each],
    "lifecycle.initialize": on("initialize", result(serverInfo={"name": "no version"})),
    "lifecycle.unknown_version": lambda sent, each: [
        result(protocolVersion=sent["params"]["protocolVersion"])(each) if sent.get("method") == "initialize" else each
    ],
    "lifecycle.latest_version": lambda sent, each: [
        result(protocolVersion="2024-11-05")(each)
        if sent.get("params", {}).get("protocolVersion") == "1999-01-01"
        else each
    ],
    "lifecycle.quiet_before_initialized": lambda sent, each: [
        {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
        each,
    ],
    "ping.response": on("ping", result(pong=True)),
    "ping.before_initialized": lambda sent, each: [
        replace(each, result=None, error={"code": 0}) if sent.get("id") in (2, 3) and sent["method"] == "ping" else each
    ],
    "progress.token": lambda sent, each: [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}, each],
    "stdio.messages_only": lambda sent, each: ["Listening …", each],
    "tools.list": on("tools/list", item("tools", inputSchema={})),
    "tools.fields": on("tools/list", item("tools", annotations={"readOnlyHint": "yes"})),
    "tools.output_schema": on("tools/list", item("tools", outputSchema={"type": "array"})),
    "tools.valid_schemas": on("tools/list", item("tools", inputSchema={"type": "object", "required": "x"})),
    "tools.names": on("tools/list", item("tools", name="two words")),
    "tools.cursor": on("tools/list", error(-32603)),
    "tools.unknown": on("tools/call", lambda each: {"jsonrpc": "2.0", "id": each["id"], "result": {"content": []}}),
    "prompts.unknown": on("prompts/get", error(0)),
    "resources.not_found": on("resources/read", error(-32603)),
    "resources.list": on("resources/list", item("resources", uri=None)),
    "logging.invalid_level": on("logging/setLevel", error(-32603)),
}


@pytest.mark.parametrize("id_", DEVIATIONS)
def test_a_deviation_under_a_handshake_is_found(runtimes, id_):
    found = outcomes(runtimes("everything"), HANDSHAKE, DEVIATIONS[id_])

    assert found[id_].status == FAIL
    assert found[id_].reasons


LATER_DEVIATIONS = {
    "base.no_server_requests": lambda sent, each: [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, each],
    "base.result_type": on("tools/list", result(resultType=None)),
    "base.retired_codes": on("resources/read", error(-32002)),
    "base.missing_capabilities": lambda sent, each: [error(-32600)(each)],
    "discover.server_info": on("server/discover", result(_meta=None)),
    "discover.cacheable": on("server/discover", result(ttlMs=-1)),
    "versioning.unsupported": lambda sent, each: [error(-32600)(each)],
    "resources.not_found": on("resources/read", error(-32002)),
    "tools.order": lambda sent, each: [
        item("tools", name=f"tool-{sent['id']}")(each) if "tools" in each.get("result", ()) else each
    ],
    "tools.cacheable": on("tools/list", result(cacheScope="all")),
    "subscriptions.acknowledged": lambda sent, each: [replace(each, params={}) if "params" in each else each],
}


@pytest.mark.parametrize("id_", LATER_DEVIATIONS)
def test_a_deviation_without_a_handshake_is_found(runtimes, id_):
    assert outcomes(runtimes("everything"), REQUEST, LATER_DEVIATIONS[id_])[id_].status == FAIL


def test_a_deviation_of_one_requirement_leaves_the_others(runtimes):
    found = outcomes(runtimes("everything"), HANDSHAKE, DEVIATIONS["tools.unknown"])

    assert [id_ for id_, each in found.items() if each.status == FAIL] == ["tools.unknown", "tools.malformed"]


@pytest.mark.parametrize("change", [None, on("tools/list", item("tools", inputSchema={}))])
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_is_started_a_few_times_only(runtimes, revision, change):
    starts = []
    outcomes(runtimes("everything"), revision, change, starts=starts)

    # For the opening with an unknown version, and to repeat failures.
    assert len(starts) <= 1 + (revision != REQUEST) + (change is not None)


def test_a_failure_counts_only_if_it_is_repeated_without_the_other_one(runtimes):
    """After a call of an unknown tool, this server forgets its prompts."""
    calls = []

    def forgetful(sent, each):
        if sent.get("method") == "initialize":
            calls.clear()
        if sent.get("method") == "tools/call":
            calls.append(sent)
            return [{"jsonrpc": "2.0", "id": each["id"], "result": {"content": []}}]
        return [error(0)(each) if calls and sent.get("method") == "prompts/get" else each]

    found = outcomes(runtimes("everything"), HANDSHAKE, forgetful)

    assert [id_ for id_, each in found.items() if each.status == FAIL] == ["tools.unknown", "tools.malformed"]


def test_wording_is_not_compared(runtimes):
    def reworded(sent, each):
        if "error" in each:
            return [{**each, "error": {"code": each["error"]["code"], "message": "other words"}}]
        return [each]

    found = outcomes(runtimes("everything"), HANDSHAKE, reworded)

    assert [id_ for id_, each in found.items() if each.status == FAIL] == []


def test_a_capability_that_is_not_declared_makes_its_requirements_not_applicable(runtimes):
    found = outcomes(runtimes("tmkb"), HANDSHAKE)

    assert found["prompts.list"].status == NOT_APPLICABLE
    assert found["tools.result"].status == NOT_COVERED  # without --call


def test_no_tool_is_called_unless_the_user_names_it(runtimes):
    called = []

    def noted(sent, each):
        called.extend([sent["params"].get("name")] if sent.get("method") == "tools/call" else [])
        return [each]

    for revision in REVISIONS:
        outcomes(runtimes("everything"), revision, noted)

    assert {*called} == {"tmkb_check_unknown_tool", None}  # None: the malformed call


def test_each_requirement_has_an_address_and_a_keyword_of_the_specification(spec):
    for each in WANTED.requirements:
        for revision in (name for name in REVISIONS if each.clause(name)):
            assert each.keyword(revision) in checks.KEYWORDS
            assert "#" in each.clause(revision) or "/" in each.clause(revision)
    assert sorted(spec["revisions"]) == REVISIONS


def test_the_client_sends_only_methods_of_the_revision(spec):
    for each in WANTED.requirements:
        for revision in (name for name in REVISIONS if each.clause(name)):
            methods = {
                step["request"]["method"] for step in each.value.get("steps", []) if "method" in step.get("request", ())
            }
            known = {*spec["revisions"][revision]["methods"], "alive", "tmkb-check/unknown"}
            assert methods <= known, (each.id, revision)


def test_reports_name_failures_with_their_clause(runtimes):
    found = list(outcomes(runtimes("everything"), HANDSHAKE, DEVIATIONS["tools.unknown"]).values())
    text = check_report.text(found, LINKS)

    assert text.startswith("FAIL SHOULD tools.malformed")
    assert "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#error-handling" in text
    assert max(len(line) for line in text.splitlines() if "://" not in line) <= 80
    assert "2 fail" in text
    assert b'failures="0"' in check_report.junit(found, LINKS, ["MUST"])
    assert b'failures="2"' in check_report.junit(found, LINKS, ["MUST", "SHOULD"])


def test_annotations_have_the_level_of_their_keyword(runtimes):
    found = list(outcomes(runtimes("everything"), HANDSHAKE, DEVIATIONS["tools.unknown"]).values())
    first, second = check_report.github(found, LINKS, ["MUST"])

    assert first.startswith("::notice title=SHOULD tools.malformed::A call without a name gets a protocol error")
    assert "%0Aunder 2025-11-25 stdio%0A" in first
    assert second.startswith("::notice title=SHOULD tools.unknown::")
    assert all(each.startswith("::error ") for each in check_report.github(found, LINKS, ["MUST", "SHOULD"]))


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "https://example.com/schema"}, {"$ref": "#/nowhere"}, {"pattern": "((("}, {"$schema": "urn:unknown"}, 5],
)
def test_a_schema_of_the_server_that_cannot_be_applied_decides_nothing(schema):
    with pytest.raises(checks.Undecidable):
        WANTED.differences({"conformsTo": schema}, "text")


def test_a_structured_result_is_compared_with_the_output_schema(runtimes):
    call = {"tool": "test_structured_output", "arguments": ARGUMENTS["test_structured_output"]}
    change = on("tools/call", result(structuredContent={"city": "Oslo"}))
    found = outcomes(runtimes("everything"), HANDSHAKE, change, call)

    assert found["tools.structured"].status == FAIL
    assert "'degrees' is a required property" in found["tools.structured"].reasons[0]
