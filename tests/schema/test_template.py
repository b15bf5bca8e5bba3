"""Placeholders in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.schema import template


def test_placeholders_are_filled_once():
    assert template.fill("{a} and {b}", {"a": "{b}", "b": 2}) == "{b} and 2"


def test_doubled_braces_are_braces():
    assert template.fill("{{a}} {{{a}}}", {"a": 1}) == "{a} {1}"


@pytest.mark.parametrize("text", ["{", "}", "{}", "{a.b}", "{a[0]}", "{a!r}", "{a:>5}", "{0}", "{a b}", "a}"])
def test_a_placeholder_is_a_bare_name(text):
    with pytest.raises(ValueError):
        template.names(text)


def test_placeholder_names_are_in_order():
    assert template.names("{b} {{x}} {a}{b}") == ["b", "a", "b"]
    assert template.tree_names({"x": ["{b}", {"y": "{a}"}, 5], "z": {"$value": "c"}}) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "brace"),
    [("a {b.c} d", "{b.c}"), ("a } b", "}"), ("a {b", "{b"), ("{{ } {a}", "}"), ("{a}{", "{"), ("x{}y", "{}")],
)
def test_the_error_has_the_text_of_the_brace(text, brace):
    with pytest.raises(ValueError) as caught:
        template.names(text)

    assert caught.value.args == (brace,)


def test_texts_of_a_tree_are_filled():
    fields = {"a": 1, "b": "x" * 81, "c": [2]}
    tree = {"texts": ["{a}", ["{b}"]], "number": 5, "value": {"$value": "b"}, "list": {"$value": "c"}}

    assert template.fill_tree(tree, fields) == {
        "texts": ["1", ["x" * 80 + "…"]],
        "number": 5,
        "value": "x" * 81,
        "list": [2],
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{a} {b.c}", ["a", "b.c"]),
        ("{.a} {a b} {} {1}", []),
        ("{{a}}", ["a"]),
        ("{a", []),
        ("a} {b}", ["b"]),
        ("{x {a}", ["a"]),
    ],
)
def test_names_in_answers_may_be_dotted(text, names):
    assert template.find_names(text) == names


def test_other_braces_in_answers_are_literal():
    assert list(template.parse_paths("a {b {c} d}")) == [("a {b ", "c"), (" d}", None)]
    assert list(template.parse_paths("{")) == [("{", None)]


@pytest.mark.parametrize(
    ("tree", "choice"),
    [
        ({"$by": "a", "values": {"x": 1}, "otherwise": 2}, ("a", {"x": 1}, 2)),
        ({"$by": "a", "values": {}}, ("a", {}, None)),
        ({"$by": "a", "values": []}, None),
        ({"$by": "a", "values": {}, "more": 1}, None),
        ({"values": {}}, None),
        ("$by", None),
    ],
)
def test_answers_by_value(tree, choice):
    assert template.choice(tree) == choice


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "box", "1 box"), (0, "box", "0 boxes"), (2, "file", "2 files"), (1, "file", "1 file")],
)
def test_plural(count, noun, text):
    assert template.plural(count, noun) == text


def test_long_values_are_cut_after_80_code_points():
    assert template.cut("😀" * 80) == "😀" * 80
    assert template.cut("😀" * 81) == "😀" * 80 + "…"


@given(st.text())
def test_a_value_is_never_read_as_a_template(value):
    assert template.fill("<{a}>", {"a": value}) == f"<{value}>"
