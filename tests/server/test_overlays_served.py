"""A folder of one file changes what the running server says, and no Python is touched."""

import json
import os
import subprocess

import pytest

from tests.support.process import SERVE, TIMEOUT, Server
from tmkb.schema import paths

pytestmark = pytest.mark.process


def serving(folder, *more):
    return Server("--schemas", folder, *more)


def test_a_language_more(overlay):
    folder = overlay(
        servers__tmkb__tools__tmkb_query="kind: tool\nextends: packaged\n"
        "input: {properties: {language: {enum: [python, go]}}}\n"
    )
    with serving(folder) as server:
        server.handshake()
        (tool,) = server.ask("tools/list")["result"]["tools"]
        accepted = server.query(context="celery task", language="go")
        refused = server.query(context="celery task", language="java")

    assert tool["inputSchema"]["properties"]["language"]["enum"] == ["python", "go"]
    assert accepted["isError"] is False
    assert json.loads(accepted["content"][0]["text"])["pattern_count"] == 0
    assert refused["content"][0]["text"] == "Invalid language 'java'. Supported languages: python, go"


def test_another_wording(overlay):
    folder = overlay(
        errors='kind: errors\nextends: packaged\nerrors: {unknown_tool: {message: "No tool is called {tool}."}}\n'
    )
    with serving(folder) as server:
        server.handshake()

        assert server.ask("tools/call", name="nope")["error"] == {"code": -32602, "message": "No tool is called nope."}


def test_a_translated_table(overlay):
    folder = overlay(
        errors="""
        kind: errors
        extends: packaged
        errors:
          unknown_tool: {message: "Unbekanntes Werkzeug: {tool}"}
          argument_wrong_type: {message: "{field} ist ungültig: erwartet wird {an_expected}, gekommen ist {received}"}
          argument_required: {message: "{field} fehlt"}
          invalid_initialize_params: {message: "initialize ist fehlerhaft: {violation}"}
          param_required: {message: "{field} fehlt"}
        types:
          "null": ["null", "null"]
          boolean: [Wahrheitswert, ein Wahrheitswert]
          integer: [Ganzzahl, eine Ganzzahl]
          number: [Zahl, eine Zahl]
          string: [Zeichenkette, eine Zeichenkette]
          array: [Liste, eine Liste]
          object: [Objekt, ein Objekt]
        """
    )
    with serving(folder) as server:
        refused = server.ask("initialize", 0)["error"]["message"]
        server.handshake()

        assert refused == "initialize ist fehlerhaft: protocolVersion fehlt"
        assert server.ask("tools/call", name="x")["error"]["message"] == "Unbekanntes Werkzeug: x"
        assert server.query(language=5)["content"][0]["text"] == (
            "context fehlt\nlanguage ist ungültig: erwartet wird eine Zeichenkette, gekommen ist Ganzzahl"
        )
        server.end()
        assert "[ERROR] [req_id=1] Unbekanntes Werkzeug: x" in server.log


def test_a_lifecycle_that_forbids_ping_before_initialization(overlay):
    folder = overlay(
        lifecycle__handshake="kind: lifecycle\nextends: packaged\nstates: {not_initialized: {accepts: {ping: null}}}\n"
    )
    with serving(folder) as server:
        assert server.ask("ping")["error"]["message"] == "Server not initialized. Send initialized notification first."
        server.ask("initialize", protocolVersion="2025-11-25")
        assert server.ask("ping")["result"] == {}


def test_a_new_tool_with_a_canned_answer(overlay):
    folder = overlay(
        servers__tmkb__tools__motto="""
        kind: tool
        name: motto
        description: Says our motto.
        provider: script.answer
        answer: "Dear {name}, deny by default. {unknown} stays."
        input:
          type: object
          properties: {name: {type: string, default: colleague}}
          additionalProperties: false
        """
    )
    with serving(folder) as server:
        server.handshake()
        tools = server.ask("tools/list")["result"]["tools"]
        answers = [
            server.ask("tools/call", name="motto", arguments=a)["result"] for a in ({}, {"name": "{name}"}, {"x": 1})
        ]
        server.end()

        assert [tool["name"] for tool in tools] == ["motto", "tmkb_query"]
        assert answers[0] == {
            "content": [{"type": "text", "text": "Dear colleague, deny by default. {unknown} stays."}],
            "isError": False,
        }
        assert answers[1]["content"][0]["text"] == "Dear {name}, deny by default. {unknown} stays."
        assert answers[2]["content"][0]["text"] == "Unknown parameter 'x'. Supported parameters: name"
        assert "[INFO] [req_id=1] Tool motto executed" in server.log


def test_a_canned_answer_of_several_blocks(overlay):
    folder = overlay(
        servers__tmkb__tools__sorry="""
        kind: tool
        name: sorry
        description: Always fails.
        provider: script.answer
        answer: {isError: true, content: [{type: text, text: "No."}, {type: text, text: "{why}"}]}
        input: {type: object, properties: {why: {type: array}}}
        """
    )
    with serving(folder) as server:
        server.handshake()

        assert server.ask("tools/call", name="sorry", arguments={"why": [1, "é"]})["result"] == {
            "content": [{"type": "text", "text": "No."}, {"type": "text", "text": '[1, "é"]'}],
            "isError": True,
        }


def test_the_environment_names_folders_too(overlay):
    folder = overlay(errors='kind: errors\nextends: packaged\nerrors: {parse_error: {message: "Kein JSON"}}\n')
    with Server(env={"TMKB_SCHEMAS": folder}) as server:
        server.send(b"{\n")

        assert server.read()["error"]["message"] == "Kein JSON"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"errors": "kind: errors\nextends: packaged\nerrors:\n  unknown_tool:\n    mesage: x\n"},
            "errors.yaml:5:5: Unknown key 'mesage' in errors.unknown_tool. Did you mean 'message'?",
        ),
        (
            {"errors": "kind: errors\n  extends: packaged\n"},
            "errors.yaml:2:10: Unexpected colon.",
        ),
        ({"tools__x": "kind: tool\n"}, "tools/x.yaml:1:1: tools/x is not a path for a schema file."),
    ],
)
def test_a_mistake_stops_the_start(overlay, files, said):
    folder = overlay(**files)
    done = subprocess.run([*SERVE, "--schemas", folder], input=b"", capture_output=True, timeout=TIMEOUT, check=False)

    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{folder}/{said}" in done.stderr.decode()


def test_a_folder_that_is_not_there_stops_the_start():
    done = subprocess.run(
        [*SERVE, "--schemas", "no/such"], input=b"", capture_output=True, timeout=TIMEOUT, check=False
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == "no/such: Folder no/such does not exist. Check `--schemas` and TMKB_SCHEMAS.\n"


def test_the_german_example():
    folder = os.path.join(paths.ROOT, "docs", "examples", "german")
    with serving(folder) as server:
        server.handshake()
        (tool,) = server.ask("tools/list")["result"]["tools"]
        unknown = server.ask("tools/call", name="x")["error"]
        refused = server.query(language=5)

    assert tool["description"].startswith("Sucht in der Wissensbasis")
    assert tool["inputSchema"]["properties"]["language"]["enum"] == ["python"]
    assert tool["inputSchema"]["properties"]["verbosity"]["description"].startswith("Form der Antwort")
    assert unknown == {"code": -32602, "message": "Unbekanntes Werkzeug: x"}
    assert refused["content"][0]["text"] == (
        "Der Parameter context fehlt\nlanguage ist ungültig: erwartet wird eine Zeichenkette, erhalten wurde Ganzzahl"
    )
