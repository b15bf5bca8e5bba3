"""What a server offers, read from a server and from a recording, and the classes of changes."""

import contextlib
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.test_client import Scripted
from tests.support.repository import ROOT
from tmkb.cli import arguments, contents, diff, layout, prompts
from tmkb.cli import tools as tools_command
from tmkb.conformance import difference, surface, transcript
from tmkb.conformance.client import Client
from tmkb.schema import impact, reader

TABLE = reader.read(os.path.join(ROOT, "tests", "data", "server_changes.yaml")).mapping()
LIVE, RECORDED = (  # calls are in recordings only, and a recording contains one handshake
    [pytest.param(each, id=each["title"]) for each in TABLE["changes"] if each.get("only") in (None, where)]
    for where in ("live", "recorded")
)
LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


def patched(value, patch):
    """Apply a JSON Merge Patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    whole = value if isinstance(value, dict) else {}
    kept = {key: inner for key, inner in whole.items() if patch.get(key, inner) is not None}
    return kept | {key: patched(whole.get(key), inner) for key, inner in patch.items() if inner is not None}


def entries(server, part, key):
    """The entries of a list; the arguments of a prompt are a list, too."""
    for name, entry in server[part].items():
        arguments = [{"name": each, **more} for each, more in entry.get("arguments", {}).items()]
        yield {key: name, **entry, **({"arguments": arguments} if arguments else {})}


def answer(server, message):
    """How the server answers a request."""
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        offered = params["protocolVersion"]
        result = {
            "protocolVersion": offered if offered in server["revisions"] else server["revisions"][0],
            "serverInfo": server["info"],
            "capabilities": server["capabilities"],
        }
        instructions = server.get("instructions")
        return {"result": result | ({"instructions": instructions} if instructions else {})}
    if method in LISTS:
        part, key = LISTS[method]
        return {"result": {part: [*entries(server, part, key)]}}
    for call in server["calls"].values():
        if (call["method"], call["params"]) == (method, params):
            return {key: call[key] for key in ("result", "error") if key in call}
    return {"error": {"code": -32601, "message": "Method not found"}}


def connected(server):
    """A new connection to the server."""
    return Scripted(lambda message: [whole] if "id" in message and (whole := answer(server, message)) else [])


def recording(server, path):
    """Write a conversation with the server that asks for everything; gives the transcript."""
    requests = [
        {"method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        *({"method": method} for method in LISTS),
        *({"method": call["method"], "params": call["params"]} for call in TABLE["server"]["calls"].values()),
    ]
    exchanges = [{"send": {"jsonrpc": "2.0", "id": number, **each}} for number, each in enumerate(requests)]
    for each in exchanges:
        response = answer(server, each["send"])
        each["expect"] = [{"jsonrpc": "2.0", "id": each["send"]["id"], **response}] if response else []
    head = {"kind": "transcript", "title": "Shop", "server": "shop", "revisions": ["2025-06-18"], "opening": "none"}
    path.write_text(json.dumps(head | {"exchanges": exchanges}))
    return transcript.read(str(path))


def live(server, spec):
    """What the server offers a client."""
    revisions = surface.supported(lambda: connected(server), spec)
    with Client(connected(server), spec, "2025-06-18") as client:
        client.open()
        return surface.live(client, revisions)


def severest(comparison):
    """The class of a comparison."""
    return min((each.impact for each in comparison.changes), key=impact.IMPACTS.index, default="none")


@pytest.mark.parametrize("change", LIVE)
def test_the_class_of_a_change_of_a_server(spec, change):
    old, new = TABLE["server"], patched(TABLE["server"], change["patch"])

    comparison = difference.compare(live(old, spec), live(new, spec))

    assert (severest(comparison), comparison.uncovered) == (change["class"], []), comparison.changes


@pytest.mark.parametrize("change", RECORDED)
def test_the_class_of_a_change_between_recordings(spec, change, tmp_path):
    servers = {"old.yaml": TABLE["server"], "new.yaml": patched(TABLE["server"], change["patch"])}
    old, new = (surface.recorded(recording(server, tmp_path / name), spec) for name, server in servers.items())

    comparison = difference.compare(old, new)

    assert (severest(comparison), comparison.uncovered) == (change["class"], []), comparison.changes


def test_a_recording_and_its_server_do_not_differ(spec, tmp_path):
    recorded = surface.recorded(recording(TABLE["server"], tmp_path / "a.yaml"), spec)

    comparison = difference.compare(recorded, live(TABLE["server"], spec))

    assert comparison.changes == []


# --- Recordings


HEAD = 'kind: transcript\ntitle: T\nserver: shop\nrevisions: ["2025-06-18"]\nopening: none\nexchanges:\n'
LIST = '- {{send: {{jsonrpc: "2.0", id: 1, method: tools/list}}, expect: [{{jsonrpc: "2.0", id: 1, result: {}}}]}}\n'


@pytest.fixture
def read(tmp_path, spec):
    """What a recording with these exchanges contains."""

    def write(exchanges):
        path = tmp_path / "one.yaml"
        path.write_text(HEAD + exchanges)
        return surface.recorded(transcript.read(str(path)), spec)

    return write


def test_what_was_not_asked_is_not_covered(read):
    everything, call = read(LIST.format("{tools: [{name: a}]}")), read('- {send_text: "no JSON", expect: []}\n')

    comparison = difference.compare(everything, call)

    assert comparison == ([], ["tools: not in NEW"])
    assert difference.compare(call, everything).uncovered == ["tools: not in OLD"]


def test_a_call_in_one_recording_only_is_not_covered(read):
    call = '- {send: {jsonrpc: "2.0", id: 5, method: tools/call, params: {name: a, _meta: {x: %d}}}, expect: []}\n'

    comparison = difference.compare(read(call % 1 + call % 2), read(call % 3))

    assert comparison == ([], ["calls: 1 only in OLD"])


def test_a_list_is_covered_when_all_its_pages_are_there(read):
    pages = LIST.format('{tools: [{name: a}], nextCursor: "2"}')
    second = LIST.format("{tools: [{name: b}]}").replace("tools/list", 'tools/list, params: {cursor: "2"}')

    assert "tools" not in read(pages).value
    assert [*read(pages + second).value["tools"]] == ["a", "b"]
    assert [*read(pages + second + LIST.format("{tools: [{name: c}]}")).value["tools"]] == ["c"]


def test_a_list_that_is_refused_is_empty(read):
    refused = LIST.replace("result: {}", "error: {{code: -32601, message: None}}").format()

    assert read(refused).value["tools"] == {}


def test_what_a_matcher_leaves_open_is_not_compared(read):
    old = LIST.format("{tools: [{name: a, title: {$any: string}, inputSchema: {type: object}}]}")
    new = LIST.format("{tools: [{$subset: {name: a, inputSchema: {type: object}}}]}")

    assert difference.compare(read(old), read(new)) == ([], [])
    open_ = difference.compare(read(LIST.format("{tools: {$any: array}}")), read(old))
    assert open_.changes == []


def test_members_of_results_that_a_matcher_leaves_open_are_not_compared(read):
    call = (
        '- {send: {jsonrpc: "2.0", id: 1, method: tools/call, params: {name: a}},'
        ' expect: [{jsonrpc: "2.0", id: 1, result: %s}]}\n'
    )
    old = read(call % "{structuredContent: {$subset: {n: 1}}, content: [{type: text, text: {$json: {a: 1}}}]}")
    new = read(call % "{structuredContent: {n: 2, m: 3}, content: [{type: text, text: '{}'}]}")

    (change,) = difference.compare(old, new).changes
    assert (change.path[-1], change.sign) == ("a", "-")


def test_a_removed_member_is_shown_without_what_a_matcher_leaves_open(read):
    call = '- {send: {jsonrpc: "2.0", id: 1, method: tools/call, params: {name: a}}, expect: [%s]}\n'
    old = read(call % '{jsonrpc: "2.0", id: 1, result: {structuredContent: {token: {$any: string}}, content: []}}')
    new = read(call % '{jsonrpc: "2.0", id: 1, result: {content: []}}')

    (change,) = difference.compare(old, new).changes
    assert change.before == {"token": "(any)"}


def test_an_older_server_is_asked_for_each_revision(spec):
    known = surface.supported(lambda: connected(TABLE["server"]), spec)

    assert known == {
        "2026-07-28": False,
        "2025-11-25": False,
        "2025-06-18": True,
        "2025-03-26": True,
        "2024-11-05": False,
    }


def both_eras(message):
    """Respond as a server of both eras whose discovery lists the stateless revision only."""
    if message["method"] == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    elif message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    else:
        result = {}
    return [{"jsonrpc": "2.0", "id": message["id"], "result": result}] if "id" in message else []


def test_a_revision_that_was_not_recorded_is_not_covered(spec, read):
    known = surface.supported(lambda: Scripted(both_eras), spec)
    assert known == dict.fromkeys(spec["revisions"], True)

    messages = ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}), ("server/discover", {})
    for method, params in messages:
        sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        turn = json.dumps({"send": sent, "expect": both_eras(sent)})
        recorded = read(f"- {turn}\n")
        for changes, impacts in (({}, []), ({next(iter(recorded.value["revisions"])): False}, ["breaking"])):
            comparison = difference.compare(
                recorded, recorded._replace(value={**recorded.value, "revisions": known | changes})
            )
            assert [each.impact for each in comparison.changes] == impacts
            assert comparison.uncovered == ["revisions: 4 only in NEW"]


# --- Servers that send anything

KEYS = st.sampled_from(
    [
        "name",
        "type",
        "properties",
        "required",
        "enum",
        "anyOf",
        "$ref",
        "items",
        "minimum",
        "arguments",
        "annotations",
        "inputSchema",
        "outputSchema",
        "description",
        "content",
        "text",
        "uri",
        "execution",
        "taskSupport",
        "default",
    ]
)
SCALARS = st.sampled_from([None, True, 0, 1.5, float("nan"), "", "a", "object", "#/$defs/a", "\x1b", "\ud800"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
TOOLS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["a", "b"]), "inputSchema": VALUES, "outputSchema": VALUES}),
    max_size=2,
)


@given(TOOLS | st.lists(st.dictionaries(KEYS, VALUES)), TOOLS, VALUES)
def test_any_answer_can_be_compared_and_shown(one, other, anything):
    sides = []
    for tools in (one, other):
        named = surface._by_name(tools, "name")
        value = {"tools": named, "serverInfo": anything, "capabilities": {"tools": anything}, "prompts": named}
        sides.append(surface.Surface(value, "2025-06-18"))
    comparison = difference.compare(*sides)

    assert difference.compare(sides[0], sides[0]).changes == []
    for change in comparison.changes:
        diff._line(change)
    for tool in one:
        layout.rendered(tools_command._page({"name": "a", **tool}))
        prompts._arguments(tool)
    layout.rendered(contents.blocks(anything, anything))
    layout.rendered(prompts._messages({"messages": [{"content": anything}, anything]}))


@given(VALUES)
def test_any_schema_is_read_for_arguments(schema):
    whole = {"type": "object", "properties": {"a": schema}}
    for text in ("a=1", "a=x", "a=[1]", "a={}"):
        with contextlib.suppress(arguments.ArgumentError):
            arguments.read([text], whole)


@given(VALUES, VALUES)
def test_the_shape_of_any_result_is_compared(one, other):
    sides = [surface.Surface({"calls": {"x": surface._ending({"result": each}, ())}}, None) for each in (one, other)]

    assert difference.compare(sides[0], sides[0]).changes == []
    difference.compare(*sides)
