"""What stands for something else in answers that are written in YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.providers import script

KNOWN = {
    "name": "Ann",
    "count": 3,
    "ok": True,
    "missing": None,
    "answers": {"user": {"action": "accept", "content": {"time": "8"}}},
    "constants": {"png": "iVBO", "form": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("Hello, {name}!", "Hello, Ann!"),
        ("{count} {ok}", "3 true"),
        ("{missing}|", "|"),
        ("{answers.user.content.time}", "8"),
        ("{answers.user.content}", '{"time": "8"}'),
        ("{answers.user.nothing.here}|{answers.nobody}", "|"),
        ("{constants.png}", "iVBO"),
        ('{"id": "{name}", "n": {count}}', '{"id": "Ann", "n": 3}'),
        ("{unknown} {Name} {} {name", "{unknown} {Name} {} {name"),
        ({"$value": "count"}, 3),
        ({"form": {"$value": "constants.form"}}, {"form": {"type": "object"}}),
        ({"a": {"$value": "missing"}, "b": None}, {"b": None}),
        ([{"text": "{name}"}, 5], [{"text": "Ann"}, 5]),
    ],
)
def test_substitute(value, filled):
    assert script.substitute(value, KNOWN) == filled


@given(st.text())
def test_inserted_values_are_not_parsed(text):
    assert script.substitute("{name}", {"name": text}) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_without_names_nothing_changes(value):
    if "$value" not in repr(value):
        assert script.substitute(value, {}) == value


def test_an_absent_argument_is_an_empty_text():
    tool = {"answer": "to {city}: {degrees}", "input": {"properties": {"city": {}, "degrees": {}}}}

    assert script.Script({}, None).operation("answer", tool)(city="Rome") == "to Rome: "
