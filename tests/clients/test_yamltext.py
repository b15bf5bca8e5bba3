"""Entries are added to YAML texts and taken out; everything else stays."""

import pytest
import yaml

from tmkb.clients import ownfile, yamltext
from tmkb.clients.faults import TextError

KEY = ("extensions",)
ENTRY = {"enabled": True, "cmd": "C:\\x y\\tmkb", "args": ["serve", "- #", "on"], "timeout": 60}
SAME = {
    "one of two": "extensions:\n    a:\n        b: 1 # c\n\n# d\nz: |\n  x\n",
    "a text of several lines": "extensions:\n  a:\n    b: |\n      text\n\n\nz: 1\n",
    "an alias": "x: &a {b: 1}\nextensions:\n  y: *a\n",
    "line ends of Windows": "extensions:\r\n  y:\r\n    a: 1\r\nb: 2\r\n",
    "no line end at last": "extensions:\n  a: 1",
    "one line": "extensions: {a: {b: c}} # c\nz: 1\n",
    "an empty map": "extensions: {}\n",
    "indented keys": "  extensions:\n    a: 1\n  b: 2\n",
}
OTHER = {
    "empty": "",
    "only a comment": "# c\n",
    "other keys": "a: 1\nb: [1, 2]\n",
    "no value": "extensions:\n# c\nb: 1\n",
    "a text at the end": "a: |+\n  b\n\n",
    "no line end at last": "a: 1",
    "a begin of the document": "---\na: 1\n",
    "an end of the document": "a: 1\n... # c\n",
    "null": "extensions: null # c\na: 1\n",
}


@pytest.mark.parametrize("text", [*SAME.values(), *OTHER.values()], ids=[*SAME, *OTHER])
def test_an_entry_is_added_and_taken_out(text):
    before = yaml.safe_load(text) or {}
    added = yamltext.with_entry(text, KEY, "tmkb", ENTRY)

    assert yaml.safe_load(added) == before | {"extensions": (before.get("extensions") or {}) | {"tmkb": ENTRY}}
    assert yamltext.entries(added, KEY)["tmkb"][0] == ENTRY
    assert yamltext.rest(added, KEY, "tmkb") == yamltext.rest(text, KEY, "tmkb")
    removed = yamltext.without_entry(added, KEY, "tmkb")
    assert yaml.safe_load(removed) == before | {"extensions": before.get("extensions") or {}}
    if text in SAME.values():
        assert removed == text


@pytest.mark.parametrize(
    "text",
    [
        "extensions:\n  a: 1\n  tmkb: # ours\n    x: 1\n\n    y: |\n      z\n  b: 2\n",
        "extensions: {a: 1, tmkb: {x: 1}, b: 2}\n",
        "extensions: {tmkb: {x: 1}, a: 1, b: 2}\n",
    ],
)
def test_an_entry_among_others_is_replaced_and_taken_out(text):
    replaced = yamltext.with_entry(text, KEY, "tmkb", ENTRY)

    assert yaml.safe_load(replaced) == {"extensions": {"a": 1, "b": 2, "tmkb": ENTRY}}
    assert yaml.safe_load(yamltext.without_entry(text, KEY, "tmkb")) == {"extensions": {"a": 1, "b": 2}}
    assert yaml.safe_load(yamltext.without_entry(replaced, KEY, "tmkb")) == {"extensions": {"a": 1, "b": 2}}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a: [1\n", "client_syntax"),
        ("a: 1\n\tb: 2\n", "client_syntax"),
        ("a: 1\n---\nb: 2\n", "client_syntax"),
        ("a: \x07\n", "client_syntax"),
        ("- a\n", "client_not_a_map"),
        ("extensions: [a]\n", "client_not_a_map"),
        ("a: &x {b: 1}\nextensions: *x\n", "client_shared_map"),
        ("extensions: &x\n  a: 1\nb: *x\n", "client_shared_map"),
        ("b: &b {extensions: {a: 1}}\n<<: *b\n", "client_shared_map"),
        ("{extensions: {a: 1}}\n", "client_flow"),
        ("a: |\n  b", "client_no_line_end"),
        ("extensions:\n  a: |\n    b", "client_no_line_end"),
        ("a: " + "[" * 1100 + "]" * 1100, "client_too_deep"),
        ("extensions: {a: 1}\nextensions: {b: 1}\n", "client_twice"),
    ],
)
def test_what_cannot_have_an_entry_is_an_error(text, rule):
    with pytest.raises(TextError) as raised:
        yamltext.with_entry(text, KEY, "tmkb", ENTRY)

    assert raised.value.rule == rule


def test_an_entry_is_not_taken_out_of_a_map_with_other_places():
    with pytest.raises(TextError, match="client_shared_map"):
        yamltext.without_entry("extensions: &x\n  tmkb: {}\n  a: 1\nb: *x\n", KEY, "tmkb")


def test_a_key_that_is_repeated_is_reported_at_its_second_place():
    text = "a: 1\nextensions: {a: 1}\nextensions: {b: 1}\n"
    with pytest.raises(TextError) as raised:
        yamltext.entries(text, KEY)

    assert raised.value.offset == text.rindex("extensions")
    assert raised.value.fields == {"key": "extensions", "first": 2}


def test_values_are_those_of_yaml():
    text = "extensions: {a: {b: yes, c: 'yes', d: 0x10, e: ~, f: 1.5, g: [x, !t y], h: 2020-01-01}}\n"

    assert yamltext.entries(text, KEY)["a"][0] == {
        "b": True, "c": "yes", "d": 16, "e": None, "f": "1.5", "g": ["x", "y"], "h": "2020-01-01",
    }  # fmt: skip


def test_a_file_of_our_own():
    text = ownfile.fresh(("mcpServers",), {"name": "tmkb", "args": ["serve"]}, {"name": "tmkb", "schema": "v1"}, "\n")

    assert yaml.safe_load(text) == {
        "name": "tmkb", "schema": "v1", "mcpServers": [{"name": "tmkb", "args": ["serve"]}],
    }  # fmt: skip
    assert ownfile.entries(text, ("mcpServers",)) == {"tmkb": ({"name": "tmkb", "args": ["serve"]}, 38)}
    more = text + "  - name: other\n"
    assert ownfile.rest(more, ("mcpServers",), "tmkb") != ownfile.rest(text, ("mcpServers",), "tmkb")
