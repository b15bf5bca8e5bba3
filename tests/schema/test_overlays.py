"""Schema folders on top of the packaged schemas."""

import json
import os
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tmkb.cli import main
from tmkb.errors import SpecError
from tmkb.schema import documents, load, merge, paths, problems, reader
from tmkb.server import sources


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


def test_a_revision_can_remove_inherited_keys(overlay):
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


def test_folders_are_searched_in_order(tmp_path):
    for name, sentence in (("first", "One: {tool}"), ("second", "Two: {tool}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "errors.yaml").write_text(
            f'kind: errors\nextends: packaged\nerrors: {{unknown_tool: {{message: "{sentence}"}}}}\n'
        )
    spec = load.load("tmkb", [str(tmp_path / "first"), str(tmp_path / "second")], sources.names())

    assert spec["revisions"]["2025-11-25"]["errors"]["unknown_tool"]["message"] == "One: {tool}"


def test_json_files_are_read(tmp_path):
    (tmp_path / "errors.json").write_text(
        '{"kind": "errors", "extends": "packaged", "errors": {"parse_error": {"message": "No JSON"}}}'
    )
    spec = load.load("tmkb", [str(tmp_path)], sources.names())

    assert spec["revisions"]["2025-11-25"]["errors"]["parse_error"]["message"] == "No JSON"


def test_two_files_of_one_place_in_one_folder(complaints):
    text = "kind: errors\nextends: packaged\nerrors: {}\n"

    assert complaints(**{"errors.yml": text, "errors.yaml": text}) == [
        "errors.yml:1:1: errors.yaml differs from this file only by its suffix. Remove one of them."
    ]


def test_a_folder_named_twice(overlay):
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {}\n")

    assert load.read([folder, folder, paths.SCHEMAS], sources.names(), ["tmkb"]).problems == []


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
    assert documents.servers([folder]) == ["everything", "hello", "sysmcp", "tmkb", "tmkb-full"]


def test_an_unknown_server_gets_a_suggestion():
    with pytest.raises(SpecError) as caught:
        load.load("tmbk", [], sources.names())

    assert [problems.line(each) for each in caught.value.problems] == [
        "--server: There is no server 'tmbk'. Did you mean 'tmkb'?"
    ]


def test_origins_name_the_file_of_each_value(overlay):
    folder = overlay(errors="kind: errors\nextends: packaged\nerrors: {unknown_tool: {message: 'No {tool}'}}\n")
    doc = load.read([folder], sources.names()).documents["errors"]

    assert doc.values["errors", "unknown_tool", "message"].file.endswith("errors.yaml")
    assert doc.values["errors", "unknown_tool", "message"].line == 3
    assert doc.values["errors", "unknown_tool", "code"].file == "schemas/errors.yaml"


LAYERS = {  # of one place, in the order of the search path
    "first": """
kind: server
extends: packaged
description: Of the first
cache: {ttlMs: 5, cacheScope: private}
websiteUrl: null
""",
    "second": """
kind: server
extends: packaged
title: Of the second
description: Of the second
cache: null
icons:
  - src: https://second.example/icon.png
""",
    "third": """
kind: server
extends: packaged
title: Of the third
websiteUrl: https://third.example
icons:
  - src: https://third.example/icon.png
    theme: light
log:
  ready:
    level: debug
""",
}


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """Folders with one layer each, by name below the current folder; what is given replaces LAYERS."""
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, text in {**LAYERS, **texts}.items():
            file = tmp_path / name / "servers" / "tmkb" / "server.yaml"
            file.parent.mkdir(parents=True)
            file.write_text(text.lstrip())
        return list(LAYERS)

    return write


def shown(capsys, *words):
    """What `tmkb schema show` prints."""
    assert main.main(["schema", "show", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("flags", [True, False], ids=["--schemas", "TMKB_SCHEMAS"])
def test_the_first_of_three_folders_wins(layers, monkeypatch, capsys, flags):
    folders = layers()
    if not flags:
        monkeypatch.setenv("TMKB_SCHEMAS", os.pathsep.join(folders))
    words = [word for folder in folders for word in ("--schemas", folder)] if flags else []
    server = json.loads(shown(capsys, "tmkb", "--json", *words))["value"]

    assert (server["description"], server["title"]) == ("Of the first", "Of the second")
    assert server["icons"] == [{"src": "https://second.example/icon.png"}]
    assert server["cache"] == {"ttlMs": 5, "cacheScope": "private"}
    assert "websiteUrl" not in server
    assert server["log"]["ready"]["level"] == "debug"
    packaged = load.read([], sources.names(), ["tmkb"]).documents["servers/tmkb/server"].value
    assert server["version"] == packaged["version"]


def test_a_file_without_extends_hides_the_files_below(layers):
    whole = """
kind: server
name: tmkb
version: "2"
revisions: ["2025-11-25"]
capabilities: {}
"""
    server = load.read(layers(second=whole), sources.names(), ["tmkb"]).documents["servers/tmkb/server"].value

    assert (server["version"], server["description"]) == ("2", "Of the first")
    assert {"title", "icons", "providers"} & set(server) == set()
    assert server["log"]["ready"]["level"] == "info"


def test_the_lowest_file_of_a_new_place_cannot_extend(layers, tmp_path):
    folders = layers()
    for folder in folders[:2]:
        file = tmp_path / folder / "servers" / "mine" / "server.yaml"
        file.parent.mkdir()
        file.write_text("kind: server\nextends: packaged\n")

    assert [
        problems.line(problem).partition(", but")[0] for problem in load.read(folders, sources.names()).problems
    ] == [os.path.join("second", "servers", "mine", "server.yaml") + ":2:10: `extends: packaged`"]


def test_shown_origins_are_correct(layers, capsys):
    words = [word for folder in layers() for word in ("--schemas", folder)]
    origins = json.loads(shown(capsys, "tmkb", "--json", *words))["origins"]
    named = set()
    for line in shown(capsys, "tmkb", *words).splitlines():
        written, _, origin = line.rpartition("  # ")
        file, _, number = origin.rpartition(":")
        named.add(file.partition(os.sep)[0])
        assert [word for word in re.findall(r"\w+", written) if word not in line_of(file, int(number))] == []
        assert origin in origins.values()

    assert {"first", "second", "third"} <= named


def line_of(file, number):
    with open(file, encoding="utf-8") as lines:
        return lines.read().splitlines()[number - 1]


TREES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers() | st.lists(st.integers(), min_size=1, max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@given(st.lists(TREES, min_size=1, max_size=4))
def test_layers_equal_a_merge_patch_with_origins(trees):
    texts = {f"{number}.yaml": yaml.safe_dump(tree) for number, tree in enumerate(trees)}
    merged, expected = reader.parse("{}", "none.yaml"), {}
    for (file, text), tree in zip(texts.items(), trees, strict=True):
        merged, expected = merge.merge(merged, reader.parse(text, file), []), patched(expected, tree)

    assert merged.value == expected
    for path, key in keys_of(expected):
        at = merged.keys[path]
        assert texts[at.file].splitlines()[at.line - 1].strip().startswith(f"{key}:")
        value = merged.part(path).value
        if not isinstance(value, dict):
            assert reader.parse(texts[at.file], at.file).part(path).value == value


def patched(old, patch):
    """Merge as the pseudocode of RFC 7386 does."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result


def keys_of(value, path=()):
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*path, key), key
        yield from keys_of(inner, (*path, key))
