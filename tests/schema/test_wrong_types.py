"""Values of the wrong type in schema files are problems with a position, never exceptions."""

import functools
import json
import os

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tmkb.cli import main
from tmkb.schema import documents, load, paths, problems, reader
from tmkb.server import sources

NOT_MAPS = [("[1]", "a list"), ("hello", "a string"), ("5", "an integer"), ("null", "null")]
REPLACEMENTS = [5, 1.5, True, None, "hi", "", [], [1], [[]], [{}], {}, {"a": 1}, {"a": {}}, {"a": [{}]}]


@pytest.mark.parametrize("place", ["errors", "log", "limits", "servers__tmkb__errors", "servers__tmkb__server"])
@pytest.mark.parametrize(("text", "type_"), NOT_MAPS)
def test_a_file_that_is_not_a_map(complaints, place, text, type_):
    assert complaints(**{place: text + "\n"}) == [
        f"{place.replace('__', '/')}.yaml:1:1: The file must be a map, not {type_}. Begin it with `kind: KIND`, and write each key as `key: value`."
    ]


def test_a_json_file_that_is_not_a_map(overlay):
    folder = overlay(**{"errors.json": "[]\n"})
    (problem,) = load.read([folder], sources.names(), ["tmkb"]).problems

    assert (
        problems.sentence(problem)
        == "The file must be a map, not a list. Begin it with `kind: KIND`, and write each key as `key: value`."
    )


@pytest.mark.parametrize(
    "words",
    [
        ["schema", "check"],
        ["schema", "show", "errors"],
        ["schema", "get", "errors:errors"],
        ["schema", "diff", "tmkb_query", "tmkb_query"],
        pytest.param(["serve", "--no-cache"], marks=pytest.mark.process),
        ["query", "celery"],
    ],
)
def test_each_command_reports_a_file_that_is_not_a_map(overlay, capsys, words):
    folder = overlay(errors="[1]\n")

    assert main.main([*words, "--schemas", folder]) == (1 if words == ["schema", "check"] else 2)
    captured = capsys.readouterr()
    assert "errors.yaml:1:1: The file must be a map, not a list." in captured.out + captured.err


@pytest.mark.parametrize("methods", ["{ping: 5}", "hi", "[]"])
def test_methods_of_the_wrong_type(complaints, methods):
    text = f"kind: revision\nextends: packaged\nmethods: {methods}\n"
    messages = complaints(**{"protocol/2024-11-05": text})

    assert any(line.startswith("protocol/2024-11-05.yaml:3:") and "must be a map" in line for line in messages)


def test_no_tool_is_checked_with_the_rules_of_a_revision_of_the_wrong_type(complaints):
    text = "kind: revision\nextends: packaged\nhttp: {marked: [x]}\n"

    assert complaints(**{"protocol/2026-07-28": text}) == [
        "protocol/2026-07-28.yaml:3:16: http.marked must be a string, not a list."
    ]


@pytest.mark.parametrize(
    ("key", "place"),
    [("providers: {files: 5}", "3:20: providers.files"), ("amends: {handshake: 5}", "3:21: amends.handshake")],
)
def test_a_part_of_a_server_of_the_wrong_type(complaints, key, place):
    assert complaints(servers__tmkb__server=f"kind: server\nextends: packaged\n{key}\n") == [
        f"servers/tmkb/server.yaml:{place} must be a map, not an integer."
    ]


def test_a_tool_of_a_service_of_the_wrong_type(complaints):
    service = "kind: service\nid: cart\nname: Cart\nversion: '1'\ntools: [5]\n"

    assert complaints(servers__tmkb__services__cart=service) == [
        "servers/tmkb/services/cart.yaml:5:9: tools[0] must be a map, not an integer."
    ]


@pytest.mark.parametrize(("lines", "type_"), [("[]", "a list"), ("hi", "a string")])
def test_log_lines_of_the_wrong_type(complaints, lines, type_):
    assert complaints(log=f"kind: log\nextends: packaged\nlines: {lines}\n") == [
        f"log.yaml:3:8: lines must be a map, not {type_}."
    ]


def nodes(value, path=()):
    """Yield the path of each value inside ``value``, and its own."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        yield from nodes(part, (*path, step))


PLACES = documents.places([])
OF_ONE_SERVER = [place for place in PLACES if not place.startswith(("servers/everything", "servers/sysmcp"))]


@functools.cache
def packaged(place):
    """Return the value of the packaged file at a place."""
    return reader.read(os.path.join(paths.SCHEMAS, f"{place}.yaml")).value


@st.composite
def changes(draw):
    """A packaged file, the path of a value in it, and a value of another type."""
    place = draw(st.sampled_from(draw(st.sampled_from([OF_ONE_SERVER, PLACES]))))
    depth = draw(st.integers(0, 4))
    path = draw(st.sampled_from([path for path in nodes(packaged(place)) if len(path) <= depth]))
    old = packaged(place)
    for step in path:
        old = old[step]
    return place, path, draw(st.sampled_from([value for value in REPLACEMENTS if type(value) is not type(old)]))


def replaced(value, path, new):
    """Return a copy of ``value`` with ``new`` at ``path``."""
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


@settings(
    max_examples=settings.default.max_examples // 2, phases=[Phase.explicit, Phase.generate]
)  # to shrink takes minutes
@given(changes(), st.booleans())
@example(("servers/tmkb/tools/tmkb_query", ("input", "properties"), 5), True)
@example(("servers/everything/tools/confirm_delete", ("input", "properties"), [1]), False)
def test_any_value_of_another_type_is_a_problem_not_an_exception(tmp_path_factory, change, overlaid):
    place, path, new = change
    folder = tmp_path_factory.mktemp("schemas")
    file = folder / f"{place}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = replaced(packaged(place), path, new)
    if overlaid and isinstance(whole, dict):
        whole = {**whole, "extends": "packaged"}
    file.write_text(json.dumps(whole), encoding="utf-8")
    owner = place.split("/")[1] if place.startswith("servers/") else "tmkb"

    found = load.read([str(folder)], sources.names(), [owner])

    assert all(problems.line(problem) for problem in [*found.problems, *found.warnings])
