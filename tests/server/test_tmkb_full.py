"""The larger server: what its clients are shown costs little, and the default server knows nothing of it."""

import json
import subprocess
import sys

import pytest

import tmkb
from tests.support.process import Server
from tmkb.knowledge import tokens

pytestmark = pytest.mark.process

BUDGET = 1000  # tokens of all descriptions; the lists as a whole may have twice that


@pytest.fixture
def server():
    with Server("--server", "tmkb-full") as server:
        server.handshake()
        yield server


def lists(server):
    return {**server.ask("tools/list")["result"], **server.ask("prompts/list")["result"]}


def described(value):
    """Every title and description inside of a value."""
    if isinstance(value, list):
        return [text for inner in value for text in described(inner)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("title", "description") if isinstance(value.get(key), str)]
    return own + [text for inner in value.values() for text in described(inner)]


def test_the_descriptions_of_all_tools_and_prompts_are_short(server):
    shown = lists(server)
    texts = described(shown)

    assert len(texts) > 20
    assert tokens.count("\n".join(texts)) < BUDGET
    assert tokens.count(json.dumps(shown, ensure_ascii=False)) < 2 * BUDGET


def test_tools_only_read_and_promise_a_form(server):
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}

    assert list(tools) == ["tmkb_get", "tmkb_list", "tmkb_query", "tmkb_schema", "tmkb_validate"]
    for name, tool in tools.items():
        assert name == "tmkb_query" or (tool["annotations"]["readOnlyHint"] and tool["outputSchema"]["required"])


def test_a_query_finds_the_patterns_of_the_default_server(server):
    with Server() as other:
        other.handshake()
        default = other.query(context="background job processing")

    assert ids_of(server.query(context="background job processing"))[:3] == ids_of(default)


def ids_of(result):
    return [pattern["id"] for pattern in json.loads(result["content"][0]["text"])["patterns"]]


def test_a_pattern_is_the_same_as_structure_and_as_text(server):
    result = server.ask("tools/call", name="tmkb_get", arguments={"id": "TMKB-AUTH-001"})["result"]

    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_the_index_stands_before_the_patterns(server, ids):
    listed = [entry["uri"] for entry in server.ask("resources/list")["result"]["resources"]]

    assert listed == ["tmkb://patterns", "tmkb://usage", *(f"tmkb://patterns/{id_}" for id_ in ids)]


def test_usage_reports_calls_and_errors(server):
    server.query(context="celery task")
    server.query()
    server.ask("tools/call", name="tmkb_get", arguments={"id": "quux"})
    figures = json.loads(server.ask("resources/read", uri="tmkb://usage")["result"]["contents"][0]["text"])["tools"]

    assert {name: (each["calls"], each["errors"]) for name, each in figures.items()} == {
        "tmkb_get": (1, 1),
        "tmkb_query": (2, 1),
    }
    assert figures["tmkb_query"]["milliseconds"]["max"] > 0


def test_patterns_of_ones_own_are_served_too(patterns):
    folder = str(patterns("acme_auth_026"))
    with Server("--server", "tmkb-full", "--patterns", folder) as server:
        server.handshake()
        listed = server.ask("tools/call", name="tmkb_list")["result"]["structuredContent"]

    assert [row["id"] for row in listed["patterns"]] == ["ACME-AUTH-026"]


def test_the_default_server_loads_and_keeps_nothing_of_it(found):
    code = "import sys; from tmkb.cli import main; main.main(['serve']); print(*sys.modules, file=sys.stderr)"
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "tmkb_query", "arguments": {"context": "celery task"}},
        },
    ]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    tmkb.Server.load()  # now there is a cache
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True)
    loaded = done.stderr.splitlines()[-1].split()

    assert "tmkb.knowledge.provider" in loaded
    assert not {"tmkb.knowledge.catalog", "tmkb.providers.usage", "yaml"} & set(loaded)
    parts = {name.split("/")[1] for name in found.entry.sections if not name.startswith("revisions/")}
    assert parts == {"index", "model", "centroids", "frame", "agent", "human"}
