"""`tmkb diff`: commands, URLs and recordings, compared as text, JSON and annotations."""

import json
import os
import shlex
import sys

import pytest

from tests.support.process import HttpServer
from tests.support.repository import ROOT

pytestmark = pytest.mark.process

NOTES = shlex.join([sys.executable, os.path.join(ROOT, "tests", "data", "servers", "notes.py")])
RENAMED = f"{NOTES} renamed"
EVERYTHING = shlex.join([sys.executable, "-m", "tmkb", "serve", "--server", "everything"])
RECORDING = """\
kind: transcript
title: Two tools
server: notes
revisions: ["2025-06-18"]
opening: none
exchanges:
  - send: {jsonrpc: "2.0", id: 1, method: tools/list}
    expect:
      - {jsonrpc: "2.0", id: 1, result: {tools: [{name: fail, description: Fails., inputSchema: {type: object}}]}}
"""


@pytest.fixture
def diff(run_tmkb):
    """Run the command; gives exit status, stdout, stderr."""
    return lambda *words: run_tmkb("diff", *words)


def test_two_commands(diff):
    assert diff(NOTES, RENAMED) == (
        1,
        "breaking (1)\n  - tools.add\nadditive (1)\n  + tools.append\n",
        "",
    )
    assert diff(NOTES, NOTES) == (0, "No differences.\n", "")


def test_the_level_that_fails(diff, tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(RECORDING)
    new.write_text(RECORDING.replace("Fails.", "Always fails."))

    assert diff(old, new) == (
        0,
        'cosmetic (1)\n  ~ tools.fail.description: "Fails." → "Always fails."\n',
        "",
    )
    assert diff(old, new, "--fail-on", "additive")[0] == 0
    assert diff(old, new, "--fail-on", "cosmetic")[0] == 1


def test_json(diff, tmp_path):
    (tmp_path / "old.yaml").write_text(RECORDING)
    (tmp_path / "new.yaml").write_text(RECORDING.replace("description: Fails., ", ""))
    status, out, _ = diff(tmp_path / "old.yaml", tmp_path / "new.yaml", "--json")

    value = json.loads(out)
    assert (status, value["counts"]) == (0, {"breaking": 0, "additive": 0, "cosmetic": 1})
    assert value["changes"] == [
        {
            "impact": "cosmetic",
            "sign": "-",
            "path": ["tools", "fail", "description"],
            "before": "Fails.",
            "after": None,
        }
    ]
    assert value["not_covered"] == []


def test_annotations(diff, tmp_path):
    (tmp_path / "old.yaml").write_text(RECORDING)
    (tmp_path / "new.yaml").write_text(
        RECORDING.replace("Fails.", '"100 %\\n::error::x"').replace("name: fail", "name: f")
    )
    status, out, _ = diff(tmp_path / "old.yaml", tmp_path / "new.yaml", "--github")

    assert (status, out) == (
        1,
        "::error title=MCP server%2C breaking change::- tools.fail\n"
        "::notice title=MCP server%2C additive change::+ tools.f\n",
    )


def test_a_line_feed_of_a_server_forges_no_annotation(diff, tmp_path):
    (tmp_path / "old.yaml").write_text(RECORDING)
    (tmp_path / "new.yaml").write_text(RECORDING.replace("name: fail", 'name: "100%\\n::error::x"'))

    out = diff(tmp_path / "old.yaml", tmp_path / "new.yaml", "--github")[1]
    assert out.splitlines()[1] == "::notice title=MCP server%2C additive change::+ tools.100%25\\n::error::x"


def test_a_recording_and_a_command(diff, tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(RECORDING)
    status, out, err = diff(path, NOTES)

    assert (status, err) == (0, "")
    assert out == (
        "additive (5)\n  + tools.add\n  + tools.ask\n  + tools.wait\n  + tools.show\n  + tools.sleep\n"
        "not covered: serverInfo: not in OLD\nnot covered: capabilities: not in OLD\n"
        "not covered: instructions: not in OLD\nnot covered: prompts: not in OLD\nnot covered: resources: not in OLD\n"
        "not covered: resourceTemplates: not in OLD\n"
    )


def test_a_server_sees_the_capabilities_of_the_recorded_client(diff, tmp_path):
    params = '{protocolVersion: "2025-06-18", capabilities: {roots: {}}, clientInfo: {name: a, version: "1"}}'
    hello = f'  - send: {{jsonrpc: "2.0", id: 0, method: initialize, params: {params}}}\n    expect: []\n'
    path = tmp_path / "old.yaml"
    path.write_text(RECORDING.replace("exchanges:\n", f"exchanges:\n{hello}"))

    assert diff(path, f"{NOTES} choosy")[0] == 0
    path.write_text(RECORDING)
    assert "- tools.fail" in diff(path, f"{NOTES} choosy")[1]


@pytest.mark.needs("httpx2", "uvicorn")
def test_a_command_and_a_url_of_one_server(diff):
    with HttpServer("--server", "everything") as server:
        assert diff(EVERYTHING, server.address) == (0, "No differences.\n", "")
        assert diff(EVERYTHING, server.address, "--revision", "2024-11-05") == (0, "No differences.\n", "")


def test_servers_of_two_eras_are_compared_under_a_revision_that_both_speak(diff):
    value = json.loads(diff(NOTES, EVERYTHING, "--json")[1])

    assert value["not_covered"] == []
    assert {"impact": "additive", "path": ["revisions", "2026-07-28"], "sign": "~", "before": False, "after": True} in (
        value["changes"]
    )


def test_sides_without_a_common_revision(diff, tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(RECORDING.replace("2025-06-18", "2026-07-28"))

    assert (
        "not covered: OLD was read under 2026-07-28, NEW under 2025-06-18: they have no revision in common"
        in (diff(path, NOTES)[1])
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing", NOTES], "'nothing' is no recording (*.yaml), no URL (http://…) and no command"),
        (["no.yaml", NOTES], "tmkb: OLD is no recording:\nno.yaml:1:1: Cannot read this file"),
        ([NOTES, "false"], "tmkb: NEW: No response to server/discover. The server closed its output."),
        ([NOTES, "http://127.0.0.1:1/mcp"], "tmkb: NEW: Cannot reach http://127.0.0.1:1/mcp: Connection refused."),
        ([NOTES, "/no/command x"], "tmkb: NEW: Cannot reach /no/command x: No such file or directory."),
        ([NOTES, NOTES, "--revision", "2020-01-01"], "Unknown revision 2020-01-01. Known: 2024-11-05"),
        (
            [NOTES, NOTES, "--revision", "2024-11-05"],
            'OLD: The server answers initialize with the revision "2025-06-18"',
        ),
    ],
)
def test_a_side_that_cannot_be_read(diff, words, sentence):
    status, out, err = diff(*words)

    assert (status, out) == (2, "")
    assert sentence in err


def test_a_program_without_its_interpreter(diff, tmp_path):
    (tmp_path / "server.py").write_text("import sys\n")
    status, _, err = diff(tmp_path / "server.py", NOTES)

    assert status == 2
    assert err.startswith("tmkb: OLD is no recording, and a command begins with a program, as in 'python server.py':\n")


def test_a_recording_without_the_revision(diff, tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(RECORDING)

    assert (
        "contains no conversation under 2024-11-05; only 2025-06-18." in diff(path, path, "--revision", "2024-11-05")[2]
    )
