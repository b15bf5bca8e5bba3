"""Values as YAML: short ones on one line, long ones in blocks, and all of them are read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.schema import emission, reader

LONG = "x" * emission.SHORT
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | st.sampled_from([LONG, "a b\n\nc\n", "a\n b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), st.sampled_from([2, 5]))
def test_any_value_is_read_back(value, indent):
    pad = " " * indent
    texts = [f"a:\n{pad}{emission.lines(value, indent)}\n", f"a: {emission.inline(value)}\n"]

    assert [reader.parse(text, "x.yaml").value for text in texts] == [{"a": value}] * 2
    assert reader.parse(emission.json_lines(value, indent), "x.json").value == value


def test_a_collection_in_block_style():
    value = {
        "words": ["plain", "a-b_c/$d", "two words", 'say "y"', "true", "é", "$", "", 1, None],
        "empty": [[], {}],
        "deep": [{"a": LONG, "b": [LONG, {"c": LONG}]}, [LONG]],
        "two words": "one\n\ntwo\n",
        "texts": ["one\ntwo", " a\nb"],
        "short": {"a": {"b": [1, 2]}},
    }

    assert emission.lines(value, 2).split("\n") == [
        'words: [plain, a-b_c/$d, "two words", \'say "y"\', "true", "é", "$", "", 1, null]',
        "  empty: [[], {}]",
        "  deep:",
        f"    - a: {LONG}",
        "      b:",
        f"        - {LONG}",
        f"        - c: {LONG}",
        f"    - - {LONG}",
        '  "two words": |',
        "    one",
        "",
        "    two",
        "  texts:",
        "    - |-",
        "      one",
        "      two",
        '    - " a\\nb"',
        "  short: {a: {b: [1, 2]}}",
    ]


@pytest.mark.parametrize("write", [emission.json_lines, lambda value, _: emission.lines({"a": value}, 0)])
def test_a_short_value_stays_on_one_line(write):
    fits = ["x" * (emission.SHORT - len('[""]'))]

    assert "\n" not in write(fits, 2)
    assert "\n" in write([f"{fits[0]}x"], 2)


def test_json_on_several_lines():
    assert emission.json_lines({"é": LONG}, 4) == f'{{\n      "é": "{LONG}"\n    }}'
    assert emission.json_lines(LONG * 2, 4) == json.dumps(LONG * 2)


@pytest.mark.parametrize(
    ("header", "text", "before", "lines"),
    [
        (">", "one two three\n", ["one", "two three"], ["one", "two three"]),
        (">", "one two four\n", ["one", "two three"], ["one", "two four"]),
        (">", "0 one two three\n", ["one", "two three"], ["0", "one", "two three"]),
        (">", "one 2 two three\n", ["one", "two three"], ["one", "2", "two three"]),
        (">", "a b x d e f\n", ["a b", "c d", "e f"], ["a b", "x d", "e f"]),
        (">", "a b x y e f g h\n", ["a b", "c d", "e f", "g h"], ["a b", "x y", "e f", "g h"]),
        (">", "a b e f\n", ["a b", "c d", "e f"], ["a b", "e f"]),
        (">", "one two\nthree\n", ["one", "two"], ["one two", "", "three"]),
        (">-", "one\n\ntwo", ["one", "", "two"], ["one", "", "", "two"]),
        (">", f"{LONG} {LONG} a-b\n", [], [LONG, f"{LONG} a-b"]),
        (">", f"{LONG * 2} a\n", [], [LONG * 2, "a"]),
        (">", f"{'x' * 116} a\n", [], [f"{'x' * 116} a"]),
        (">", f"{'x' * 117} a\n", [], ["x" * 117, "a"]),
        (">", f"{'x' * 114} ab-cd\n", [], ["x" * 114, "ab-cd"]),
        ("|-", "a\nb", [], ["a", "b"]),
        ("|", "a\n\nb\n", [], ["a", "", "b"]),
    ],
)
def test_a_text_of_several_lines(header, text, before, lines):
    assert emission.block(text, header, 2, before).split("\n") == [header, *(f"  {line}".rstrip() for line in lines)]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (">", "a "),
        (">-", "a\n"),
        ("|-", "a\n"),
        ("|", "a"),
        ("|", " a\n"),
        ("|", "\n"),
        ("|-", ""),
    ],
)
def test_a_text_that_a_block_cannot_have(header, text):
    assert emission.block(text, header, 2, []) is None
