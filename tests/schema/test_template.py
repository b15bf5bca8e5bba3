"""Sentences with holes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.schema import template


def test_holes_are_filled_once():
    assert template.fill("{a} and {b}", {"a": "{b}", "b": 2}) == "{b} and 2"


def test_doubled_braces_are_braces():
    assert template.fill("{{a}} {{{a}}}", {"a": 1}) == "{a} {1}"


@pytest.mark.parametrize("text", ["{", "}", "{}", "{a.b}", "{a[0]}", "{a!r}", "{a:>5}", "{0}", "{a b}", "a}"])
def test_a_hole_is_a_bare_name(text):
    with pytest.raises(ValueError):
        template.names(text)


def test_holes_are_told_in_order():
    assert template.names("{b} {{x}} {a}{b}") == ["b", "a", "b"]


def test_long_values_are_cut_after_80_code_points():
    assert template.cut("😀" * 80) == "😀" * 80
    assert template.cut("😀" * 81) == "😀" * 80 + "…"


@given(st.text())
def test_a_value_is_never_read_as_a_template(value):
    assert template.fill("<{a}>", {"a": value}) == f"<{value}>"
