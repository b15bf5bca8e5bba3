"""Folders of schemas put on top of the packaged ones."""

import pytest

from tmkb.cli import sources
from tmkb.errors import SpecError
from tmkb.spec import load, schemas


def test_the_packaged_schemas_have_no_problems():
    assert load.read([], sources.names()).problems == []


def test_a_file_with_extends_packaged_is_merged(overlay):
    folder = overlay(
        servers__tmkb__tools__tmkb_query="""
        kind: tool
        extends: packaged
        input: {properties: {language: {enum: [python, go]}}}
        """
    )
    tool = load.load("tmkb", [folder], sources.names())["tools"]["tmkb_query"]

    assert tool["input"]["properties"]["language"]["enum"] == ["python", "go"]
    assert tool["input"]["required"] == ["context"]


def test_a_file_without_it_replaces(overlay):
    folder = overlay(
        lifecycle__handshake="""
        kind: lifecycle
        name: handshake
        start: initialized
        states:
          initialized: {accepts: {"*": initialized}}
        """
    )
    lifecycle = load.load("tmkb", [folder], sources.names())["lifecycles"]["handshake"]

    assert list(lifecycle["states"]) == ["initialized"]


def test_null_removes(overlay):
    folder = overlay(
        lifecycle__handshake="""
        kind: lifecycle
        extends: packaged
        states: {not_initialized: {accepts: {ping: null}}}
        """
    )
    states = load.load("tmkb", [folder], sources.names())["lifecycles"]["handshake"]["states"]

    assert list(states["not_initialized"]["accepts"]) == ["initialize", "notifications/cancelled"]


def test_a_revision_can_lose_what_it_inherits(overlay):
    folder = overlay(
        **{
            "protocol__2025-11-25.yaml": """
            kind: revision
            extends: packaged
            methods: {ping: null}
            """
        }
    )
    spec = load.load("tmkb", [folder], sources.names())

    assert "ping" not in spec["revisions"]["2025-11-25"]["methods"]
    assert "ping" in spec["revisions"]["2025-06-18"]["methods"]


def test_folders_are_looked_through_in_their_order(tmp_path):
    for name, sentence in (("first", "One: {tool}"), ("second", "Two: {tool}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "errors.yaml").write_text(
            f'kind: errors\nextends: packaged\nerrors: {{unknown_tool: {{message: "{sentence}"}}}}\n'
        )
    spec = load.load("tmkb", [str(tmp_path / "first"), str(tmp_path / "second")], sources.names())

    assert spec["revisions"]["2025-11-25"]["errors"]["unknown_tool"]["message"] == "One: {tool}"


def test_json_files_count_too(tmp_path):
    (tmp_path / "errors.json").write_text(
        '{"kind": "errors", "extends": "packaged", "errors": {"parse_error": {"message": "No JSON"}}}'
    )
    spec = load.load("tmkb", [str(tmp_path)], sources.names())

    assert spec["revisions"]["2025-11-25"]["errors"]["parse_error"]["message"] == "No JSON"


def test_the_error_table_of_a_server_is_general_then_revision_then_server(overlay):
    folder = overlay(
        **{
            "protocol__2025-06-18.yaml": """
            kind: revision
            extends: packaged
            errors: {parse_error: {code: -1}, internal_error: {code: -2}}
            """,
            "servers__tmkb__errors": """
            kind: errors
            extends: packaged
            errors: {internal_error: {code: -3}}
            """,
        }
    )
    revisions = load.load("tmkb", [folder], sources.names())["revisions"]
    codes = {
        name: (r["errors"]["parse_error"]["code"], r["errors"]["internal_error"]["code"])
        for name, r in revisions.items()
    }

    assert codes == {
        "2024-11-05": (-32700, -3),
        "2025-03-26": (-32700, -3),
        "2025-06-18": (-1, -3),
        "2025-11-25": (-1, -3),
        "2026-07-28": (-1, -3),
    }


def test_a_new_server_is_a_folder(overlay):
    folder = overlay(
        servers__hello__server="""
        kind: server
        name: hello
        version: "1"
        revisions: ["2025-06-18"]
        capabilities: {tools: {}}
        """,
        servers__hello__tools__greet="""
        kind: tool
        name: greet
        description: Greets.
        provider: script.answer
        answer: "Hello, {name}!"
        input: {type: object, properties: {name: {type: string}}, required: [name]}
        """,
    )
    spec = load.load("hello", [folder], sources.names())

    assert (list(spec["tools"]), list(spec["revisions"])) == (["greet"], ["2025-06-18"])
    assert schemas.servers([folder]) == ["everything", "hello", "tmkb", "tmkb-full"]


def test_an_unknown_server_is_told_with_the_nearest_name():
    with pytest.raises(SpecError) as caught:
        load.load("tmbk", [], sources.names())

    assert [(p.rule, p.fields["nearest"]) for p in caught.value.problems] == [("unknown_name", "tmkb")]


def test_origins_name_the_file_of_each_value(overlay):
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {unknown_tool: {message: 'No {tool}'}}\n")
    doc = load.read([folder], sources.names()).documents["errors"]

    assert doc.values["errors", "unknown_tool", "message"].file.endswith("errors.yaml")
    assert doc.values["errors", "unknown_tool", "message"].line == 3
    assert doc.values["errors", "unknown_tool", "code"].file == "schemas/errors.yaml"
