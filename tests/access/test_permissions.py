"""Patterns of names and URIs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.access.permissions import Permissions, overlaps


def permits(pattern, name):
    return Permissions([{"tools": [pattern]}]).permits("tools", name)


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("get", ["get"], ["Get", "get ", "get\n", "ge", "gett", "", "*"]),
        ("*", ["", "x", "a\nb", "*"], []),
        ("get_*", ["get_", "get_x", "get_*"], ["get", "xget_", "*"]),
        ("*_get", ["_get", "x_get"], ["x_getx"]),
        ("a*b*c", ["abc", "a-b-b-c", "abbc"], ["ab", "acb", "abcd"]),
        ("a.c", ["a.c"], ["abc"]),
        ("a[b]?", ["a[b]?"], ["ab"]),
    ],
)
def test_a_pattern_matches_whole_names(pattern, names, others):
    assert [name for name in names + others if permits(pattern, name)] == names


def test_a_kind_permits_nothing_of_another():
    permissions = Permissions([{"tools": ["*"]}])

    assert [permissions.permits(kind, "x") for kind in ("tools", "prompts", "resources")] == [True, False, False]


def test_roles_add_up():
    permissions = Permissions([{"tools": ["a"]}, {"tools": ["b"]}])

    assert [permissions.permits("tools", name) for name in "abc"] == [True, True, False]


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_matching_agrees_with_its_definition(pattern, name):
    def matches(at, rest):
        if at == len(pattern):
            return not rest
        if pattern[at] == "*":
            return any(matches(at + 1, rest[start:]) for start in range(len(rest) + 1))
        return rest[:1] == pattern[at] and matches(at + 1, rest[1:])

    assert permits(pattern, name) == matches(0, name)


@given(
    st.text("ab*", max_size=6), st.lists(st.text("ab", max_size=2), min_size=1, max_size=3), st.text("ab", max_size=4)
)
def test_a_template_overlaps_with_every_pattern_of_its_uris(pattern, literals, value):
    template, uri = "{x}".join(literals), value.join(literals)
    permissions = Permissions([{"resources": [pattern]}])

    if permissions.permits("resources", uri):
        assert permissions.permits_some(template, {})
    assert permissions.permits_some(template, {"x": value}) == permissions.permits("resources", uri)


@pytest.mark.parametrize(
    ("pattern", "template", "expected"),
    [
        ("a://b/*", "a://b/{id}", True),
        ("a://b/x*", "a://b/{id}", True),
        ("a://c/*", "a://b/{id}", False),
        ("a://*/x", "a://b/{id}/y", False),
        ("a://b/1", "a://b/{id}", True),
        ("a://b/1", "a://b/1", True),
        ("a://b/1", "a://b/2", False),
    ],
)
def test_overlaps(pattern, template, expected):
    assert overlaps(pattern, template) is expected


def test_values_are_encoded_as_in_uris():
    permissions = Permissions([{"resources": ["a://b/c/*"]}])

    assert not permissions.permits_some("a://b/{id}", {"id": "c/d"})
    assert Permissions([{"resources": ["a://b/c%2F*"]}]).permits_some("a://b/{id}", {"id": "c/d"})


def test_long_names_take_time_in_proportion_to_their_length():
    assert not permits("a*a*a*a*a*a*b", "a" * 200_000)  # with backtracking, it would not end
