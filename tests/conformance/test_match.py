"""The comparison of expected and actual messages."""

from hypothesis import given
from hypothesis import strategies as st

from tmkb.conformance import match

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_each_difference_names_its_path():
    expected = {"a": [1, {"b": "x"}], "c": 1, "d": {"$any": "string"}}
    actual = {"a": [1, {"b": "y"}, 3], "d": 5, "e": None}

    assert list(match.differences(expected, actual)) == [
        'a: expected 2, got 3: [1,{"b":"y"},3]',
        'a[1].b: expected "x", got "y"',
        "c: missing, expected 1",
        "d: expected any string, got 5",
        "e: not expected, got null",
    ]


def test_json_types_are_compared():
    assert list(match.differences(1, True)) == ["value: expected 1, got true"]
    assert list(match.differences(1, 1.0)) == ["value: expected 1, got 1.0"]


def test_placeholders_that_still_match_stay():
    expected = {"v": {"$var": "revision"}, "t": {"$any": "string"}, "l": [1], "x": {"$any": "string"}}
    actual = {"v": "2025-11-25", "t": "y", "l": [1, 2], "x": 5}

    assert match.update(expected, actual, "2025-11-25") == {
        "v": {"$var": "revision"},
        "t": {"$any": "string"},
        "l": [1, 2],
        "x": 5,
    }


@given(values)
def test_a_value_equals_itself(value):
    assert list(match.differences(value, value)) == []


@given(values, values)
def test_an_updated_value_matches(expected, actual):
    assert list(match.differences(match.update(expected, actual, "r"), actual)) == []
