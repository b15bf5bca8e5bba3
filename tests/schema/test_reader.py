"""The reader of YAML and JSON: accepted values, refused values, and positions."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from tmkb.errors import DocumentError
from tmkb.schema import problems, reader


def parse(text, file="file.yaml"):
    return reader.parse(text, file)


def faults(text, file="file.yaml"):
    with pytest.raises(DocumentError) as caught:
        parse(text, file)
    return [(p.rule, p.line, p.column) for p in caught.value.problems]


def test_values_are_those_of_json():
    text = "a: [1, -2.5, 3e2, x y, true, false, null]\nb: {c: '1', d: \"on\"}\ne: |\n  2025-11-25\n"

    assert parse(text).value == {
        "a": [1, -2.5, 300.0, "x y", True, False, None],
        "b": {"c": "1", "d": "on"},
        "e": "2025-11-25\n",
    }


def test_every_value_and_key_has_a_position():
    doc = parse("a:\n  b: [1, {c: x}]\n")

    assert doc.keys["a", "b"] == ("file.yaml", 2, 3)
    assert doc.values["a", "b"] == ("file.yaml", 2, 6)
    assert doc.values["a", "b", 1, "c"] == ("file.yaml", 2, 14)


@pytest.mark.parametrize(
    ("text", "rule", "column"),
    [
        ("a: 2025-11-25", "unquoted_date", 4),
        ("a: on", "ambiguous", 4),
        ("a: No", "ambiguous", 4),
        ("a: 010", "ambiguous", 4),
        ("a: 1_000", "ambiguous", 4),
        ("a: 12:30", "ambiguous", 4),
        ("a: ~", "ambiguous", 4),
        ("a: .inf", "ambiguous", 4),
        ("a: =", "ambiguous", 4),
        ("<<: {a: 1}", "merge_key", 1),
        ("on: 1", "ambiguous", 1),
        ("a:", "no_value", 3),
        ("a: 1\nb: 2\na: 3", "duplicate_key", 1),
        ("a: &x 1", "alias", 4),
        ("a: *x", "alias", 4),
        ("a: !!str 1", "tag", 4),
        ("a: !thing {}", "tag", 4),
        ("1: x", "key_not_string", 1),
        ("true: x", "key_not_string", 1),
        ("[a]: x", "key_not_string", 1),
        ("a: 1\n---\nb: 2", "several_documents", 1),
        ("a: 1e999", "number_too_large", 4),
        ("a: " + "9" * 5000, "number_too_large", 4),
        ("", "empty", 1),
        ("# nothing\n", "empty", 1),
        ("[" * 500, "too_deep", 65),  # the parser itself gives up at 1,000 levels since libyaml 0.2.6
        ("a: [1", "open_bracket", 4),
        ("a: b: c", "colon_in_text", 5),
        ("a:\n\tb: 1", "tab", 1),
        ("a: `b`", "reserved", 4),
        ("a: {b}", "bare_brace", 6),
        ("a: \x01", "syntax", 4),
    ],
)
def test_ambiguous_scalars_are_refused(text, rule, column):
    assert [(found, at) for found, _, at in faults(text)] == [(rule, column)]


def test_all_problems_of_a_file_are_reported():
    assert faults("a: on\nb: 010\nb: &x 1\n") == [
        ("ambiguous", 1, 4),
        ("ambiguous", 2, 4),
        ("duplicate_key", 3, 1),
        ("alias", 3, 4),
    ]


def test_duplicate_key_names_the_first_line():
    with pytest.raises(DocumentError) as caught:
        parse("a: 1\n\na: 2\n")

    assert problems.line(caught.value.problems[0]) == "file.yaml:3:1: Key 'a' is already in line 1. Keep one of them."


def test_json_files_are_read_as_json():
    doc = parse('{"a":\t"\\ud83d\\ude00\\/", "b": [1,\n\t{"c": 2025}]}', "file.json")

    assert doc.value == {"a": "😀/", "b": [1, {"c": 2025}]}
    assert doc.values["b", 1, "c"] == ("file.json", 2, 8)


def test_escaped_surrogates_do_not_make_keys_alike():
    assert parse('{"\\ud800\\udc00": 1, "\\ud800\\udc01": 2}', "file.json").value == {"𐀀": 1, "𐀁": 2}
    assert parse('{"\\\\ud800": 1, "\\\\ue000": 2}', "file.json").value == {"\\ud800": 1, "\\ue000": 2}


def test_json_files_must_be_json():
    assert faults("a: 1", "file.json") == [("json_syntax", 1, 1)]
    assert faults('{"a": 1, "a": 2}', "file.json") == [("duplicate_key", 1, 10)]


def test_invalid_utf8_is_reported_with_its_position(tmp_path):
    (tmp_path / "file.yaml").write_bytes("a: 1\nb: é".encode() + b"\xff\n")

    with pytest.raises(DocumentError) as caught:
        reader.read(str(tmp_path / "file.yaml"), "file.yaml")

    assert problems.line(caught.value.problems[0]) == "file.yaml:2:5: Not UTF-8 from here on. Save the file as UTF-8."


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(DocumentError) as caught:
        reader.read(str(tmp_path / "file.yaml"), "file.yaml")

    assert problems.line(caught.value.problems[0]) == "file.yaml:1:1: Cannot read this file: No such file or directory."


def test_a_byte_order_mark_is_skipped(tmp_path):
    (tmp_path / "file.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")

    assert reader.read(str(tmp_path / "file.yaml")).value == {"a": 1}


def test_a_problem_below_a_missing_part_is_at_the_nearest_parent():
    doc = parse("a:\n  b: 1\n")

    assert doc.problem("missing_key", ("a", "x", "y")).line == 2
    assert doc.key_problem("missing_key", ("a", "x")).line == 1
    assert parse("a: 1").problem("missing_key", ()).column == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    # YAML, by which JSON is read too, knows keys of at most 1024 characters (YAML 1.2, section 7.4.2).
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=100), inner),
    max_leaves=20,
)


EXPONENT = re.compile(r"(?m)(^|\s)-?\d+(\.\d+)?[eE][-+]?\d+:?$")


@given(json_values)
def test_any_json_value_is_read_back(value):
    assert parse(json.dumps(value), "file.json").value == value


@given(st.text())
def test_no_text_breaks_the_reader(text):
    try:
        parse(text)
    except DocumentError as error:
        assert all(problems.line(problem) for problem in error.problems)


@given(st.text("abé1:-?[]{},#&*!|>%@`'\"\\ \t\n\u201c\x00", max_size=30))
def test_a_problem_is_inside_the_text(text):
    try:
        parse(text)
    except DocumentError as error:
        lines = [*text.split("\n"), ""]
        for problem in error.problems:
            assert problems.line(problem).startswith(f"file.yaml:{problem.line}:{problem.column}: ")
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1


@given(json_values)
def test_values_equal_those_of_the_standard_reader(value):
    text = yaml.safe_dump(value, allow_unicode=True)
    assume(not EXPONENT.search(text))  # a number in JSON and in YAML 1.2, but a string for the standard reader
    try:
        found = parse(text).value
    except DocumentError:
        return  # refused, because readers could disagree

    assert found == yaml.safe_load(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_refused(number):
    with pytest.raises(DocumentError) as caught:
        reader.parse(f'{{"NaN": "NaN",\n "x": {number},\n "y": NaN}}\n', "t.json")

    assert [(p.rule, p.line, p.column) for p in caught.value.problems] == [("json_syntax", 2, 7)]


@pytest.mark.parametrize(
    ("text", "file", "sentence"),
    [
        ("{", "a.json", "a.json:1:2: "),
        ("a: \ud800", "a.yaml", "a.yaml:1:4: "),
        ("é: 1\né: \x07\n", "a.yaml", "a.yaml:2:4: "),
        ("[" * 100, "a.yaml", f"a.yaml:1:{reader.DEEPEST + 1}: "),
    ],
)
def test_a_problem_names_its_file(text, file, sentence):
    with pytest.raises(DocumentError) as caught:
        parse(text, file)
    (problem,) = caught.value.problems

    assert problems.line(problem).startswith(sentence)
    assert problem.rule in ("json_syntax", "not_utf8", "syntax", "too_deep")
    assert problem.fields.get("limit", reader.DEEPEST) == reader.DEEPEST


def test_problems_before_a_syntax_error_are_reported_too():
    with pytest.raises(DocumentError) as caught:
        reader.parse("a: 2026-07-28\nb: 1\nb: 2\nc: [1\n", "x.yaml")

    assert [(each.rule, each.line, each.column) for each in caught.value.problems] == [
        ("unquoted_date", 1, 4),
        ("duplicate_key", 3, 1),
        ("open_bracket", 4, 4),
    ]


@pytest.mark.full
@pytest.mark.parametrize("folder", ["conformance", "docs", "patterns", "schemas"])
def test_every_packaged_file_is_read_alike_without_libyaml(folder):
    """PyYAML built from source may lack libyaml; its own parser refuses some texts, such as `[a?]`."""
    root = Path(__file__).parents[2] / folder
    files = [Path(at) / name for at, _, names in os.walk(root) for name in names if name.endswith(".yaml")]

    assert files
    for file in files:
        text = file.read_text("utf-8")
        assert events(text, yaml.SafeLoader) == events(text, reader.LOADER), file


def events(text, loader):
    return [(type(event), getattr(event, "value", None)) for event in yaml.parse(text, loader)]
