"""Edits change one value and keep every other byte of every packaged file."""

import glob
import os

import pytest

from tests.support.tiers import sample
from tmkb.schema import paths, reader
from tmkb.schema.edit import Text

FILES = sorted(glob.glob(os.path.join(paths.SCHEMAS, "**", "*.yaml"), recursive=True))


def source(path, newline="\n"):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().replace("\n", newline)


def other(value):
    """A different value of the same type, which the same style can say."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return {"null": "null"}.get(value, value + "x") if isinstance(value, str) else value


def value(found, path):
    for step in path:
        found = found[step]
    return found


def leaves(doc):
    return [path for path in doc.values if path and not isinstance(value(doc.value, path), dict | list)]


@pytest.mark.parametrize("file", sample(FILES, 30), ids=lambda file: os.path.relpath(file, paths.SCHEMAS))
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_setting_a_value_back_restores_every_byte(file, newline):
    before = source(file, newline)
    doc = reader.parse(before, file)
    olds = {path: value(doc.value, path) for path in leaves(doc)}
    text = Text(before, file)
    text.set_all(olds)
    assert text.text == before
    text.set_all({path: other(old) for path, old in olds.items()})
    edited = reader.parse(text.text, file).value
    for path, old in olds.items():
        assert value(edited, path) == other(old)
    assert text.text.count("\n") - text.text.count(newline) == 0
    text.set_all(olds)
    assert text.text == before


@pytest.mark.parametrize("file", sample(FILES, 30), ids=lambda file: os.path.relpath(file, paths.SCHEMAS))
def test_adding_and_removing_restores_every_byte(file):
    before = source(file)
    doc = reader.parse(before, file)
    maps = [path for path in doc.values if isinstance(value(doc.value, path), dict)]
    for path in maps[:: max(1, len(maps) // 8)]:
        text = Text(before, file)
        text.add((*path, "made_up"), {"deep": ["a: b", 1, True, None]})
        assert value(reader.parse(text.text, file).value, (*path, "made_up")) == {"deep": ["a: b", 1, True, None]}
        text.remove((*path, "made_up"))
        assert text.text == before, path


def edited(action, text, path, *value, file="x.yaml"):
    changed = Text(text, file)
    getattr(changed, action)(path, *value)
    reader.parse(changed.text, file)
    return changed.text


@pytest.mark.parametrize(
    ("before", "action", "path", "value", "after"),
    [
        ("a: 1   # one\nb: 2\n", "set", ("a",), 12, "a: 12   # one\nb: 2\n"),
        ("a: 'it''s'\n", "set", ("a",), "they're", "a: 'they''re'\n"),
        ("a: x\n", "set", ("a",), "2025-11-25", 'a: "2025-11-25"\n'),
        ("a: {b: x}\n", "set", ("a", "b"), "y, z", 'a: {b: "y, z"}\n'),
        ("a: |\n  one\n  two\nb: 1\n", "set", ("a",), "one\nthree\n", "a: |\n  one\n  three\nb: 1\n"),
        ("a:   # why\n  b: 1\nc: 2\n", "set", ("a",), {"b": [1]}, "a:   # why\n  b: [1]\nc: 2\n"),
        ("a:   # why\n  b: 1\nc: 2\n", "set", ("a",), 5, "a: 5   # why\nc: 2\n"),
        ("a: 1\nb: [1, 2]\n", "set", ("b",), [3], "a: 1\nb: [3]\n"),
        ("a: 1\nb: 2", "add", ("c",), "x", "a: 1\nb: 2\nc: x"),
        ("a: 1\n", "add", ("b",), [1, 2], "a: 1\nb: [1, 2]\n"),
        ("a:\n  b: 1\n", "add", ("a", "c"), {"d": 1}, "a:\n  b: 1\n  c: {d: 1}\n"),
        ("a: {}\n", "add", ("a", "b"), 1, "a: {b: 1}\n"),
        ("a:\n  - x\n  - y # why\nb: 1\n", "add", ("a", 2), "z", "a:\n  - x\n  - y # why\n  - z\nb: 1\n"),
        ("a: [x]\n", "add", ("a", 1), "z", "a: [x, z]\n"),
        ("a: 1\n# about b\nb:\n  c: 1\nd: 2\n", "remove", ("b",), None, "a: 1\n# about b\nd: 2\n"),
        ("a: {b: 1, c: 2}\n", "remove", ("a", "b"), None, "a: {c: 2}\n"),
        ("a: {b: 1, c: 2}\n", "remove", ("a", "c"), None, "a: {b: 1}\n"),
        ("a:\n  b: 1\nc: 2\n", "remove", ("a", "b"), None, "a: {}\nc: 2\n"),
        ("a:\n  - b: 1\n    c: 2\n", "remove", ("a", 0, "b"), None, "a:\n  - c: 2\n"),
        ("a:\n  - b: 1\n    c: 2\n  - d\n", "set", ("a", 0), "x", "a:\n  - x\n  - d\n"),
        ("a:\n  - b: 1\n", "remove", ("a", 0, "b"), None, "a:\n  - {}\n"),
        ("a:\n  - x\n", "remove", ("a", 0), None, "a: []\n"),
        ("\ufeffa: 1\nb: 2\n", "set", ("b",), 3, "\ufeffa: 1\nb: 3\n"),
        ("a: 1\nb: 2", "remove", ("b",), None, "a: 1"),
        ("a:\n- x\n- y\n", "remove", ("a", 0), None, "a:\n- y\n"),
        ("a: [b]\n", "set_block", ("a",), [{"c": "text of several lines\nand more\n"}, 1], "a:\n  - c: |\n      text of several lines\n      and more\n  - 1\n"),
        ("a: {b: [c]}\n", "set_block", ("a", "b"), ["d"], "a: {b: [d]}\n"),
        ("a:\n  - b\n", "set_block", ("a",), ["d"], "a:\n  - d\n"),
        ("a: [b]\n", "set_block", ("a",), [], "a: []\n"),
        ("a: |\n  one\nb: 1\n", "set", ("a",), "no line end", 'a: "no line end"\nb: 1\n'),
        ("a: |\n  one\nb: 1\n", "set", ("a",), "\n", 'a: "\\n"\nb: 1\n'),
        ("a: |-\n  one\nb: 1\n", "set", ("a",), "bell \a", 'a: "bell \\u0007"\nb: 1\n'),
        ("a: >\n  one\n  two\n", "set", ("a",), "one two\nthree\n", "a: >\n  one two\n\n  three\n"),
        ("a: >\n  one\n  two\n  three\n", "set", ("a",), "one 2 three\n", "a: >\n  one\n  2\n  three\n"),
        ("a:  # why\n  # and this\n  b: 1\nc: 2\n", "set", ("a",), 5, "a: 5  # why\nc: 2\n"),
        ("a: 'x'\n", "set", ("a",), "tab\t", 'a: "tab\\t"\n'),
        ("a:\r\n  b: 1\r\nc: 2\r\n", "add", ("a", "d"), 2, "a:\r\n  b: 1\r\n  d: 2\r\nc: 2\r\n"),
    ],
)  # fmt: skip
def test_an_edit(before, action, path, value, after):
    assert edited(action, before, path, *([] if action == "remove" else [value])) == after


def test_long_values_use_several_lines():
    long = {
        "surface": "tool",
        "fields": ["one", "two"],
        "message": "A sentence that goes on and on, to the very end of all of it",
    }

    assert edited("add", "errors:\n  a: {x: 1}\n", ("errors", "b"), long).splitlines()[2:] == [
        "  b:",
        "    surface: tool",
        "    fields: [one, two]",
        '    message: "A sentence that goes on and on, to the very end of all of it"',
    ]


@pytest.mark.parametrize(
    "text", ["yes", "Null", "a\u200b\U0001f600", "\U000e0001", "2025-11-25", "it's", 'say "y"', "# x", ""]
)
@pytest.mark.parametrize("before", ["a: x\n", "a: []\n"])
def test_every_string_is_read_as_written(before, text):
    changed = Text(before, "x.yaml")
    changed.set_block(("a",), [{"key": [text]}, "long " * 20]) if "[" in before else changed.set(("a",), text)

    expected = [{"key": [text]}, "long " * 20] if "[" in before else text
    assert reader.parse(changed.text, "x.yaml").value == {"a": expected}


def test_json_stays_json():
    before = '{\n\t"a": {"b": "x"},\n\t"c": [1, 2],\n\t"d": "\\ud83d\\ude00"\n}\n'
    text = Text(before, "x.json")
    text.set(("a", "b"), 'say "y"')
    text.add(("c", 2), 3)
    text.add(("e",), {"f": None})

    assert text.text == (
        '{\n\t"a": {"b": "say \\"y\\""},\n\t"c": [1, 2, 3],\n\t"d": "\\ud83d\\ude00",\n\t"e": {"f": null}\n}\n'
    )
    text.remove(("e",))
    text.remove(("c", 2))
    text.set(("a", "b"), "x")
    assert text.text == before


def test_long_json_uses_several_lines():
    text = "A sentence that goes on and on, to the very end of all of it, and even further than the end of a line"

    assert edited("add", '{\n  "a": {"x": 1}\n}\n', ("a", "b"), [text], file="x.json") == (
        f'{{\n  "a": {{"x": 1, "b": [\n    "{text}"\n  ]}}\n}}\n'
    )
    assert edited("set", '{"a": 1}\n', ("a",), text, file="x.json") == f'{{"a": "{text}"}}\n'
