"""The comparison of expected and actual messages."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.conformance import match, matchers

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False).map(lambda each: each + 0.0)
    | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
# values in which objects look like matchers, whole or misspelled
keys = st.sampled_from([*matchers.EXPECTED, "$anny", "$defs", "a"])
operands = scalars | st.sampled_from(["a", "string", "#/$defs/A", '{"a":1}', "["])
odd = st.recursive(
    operands,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=8,
)


def differences(expected, actual, **bindings):
    return list(match.differences(expected, actual, bindings=bindings))


def test_each_difference_names_its_path():
    expected = {"a": [1, {"b": "x"}], "c": 1, "d": {"$any": "string"}, "f g": 1}
    actual = {"a": [1, {"b": "y"}, 3], "d": 5, "f g": 2, "e": None}

    assert differences(expected, actual) == [
        'a: expected 2, got 3: [1,{"b":"y"},3]',
        'a[1].b: expected "x", got "y"',
        "c: missing, expected 1",
        "d: expected any string, got 5",
        '["f g"]: expected 1, got 2',
        "e: not expected, got null",
    ]


def test_entries_with_names_are_compared_by_name():
    tools = [{"name": "forecast", "x": 1}, {"$subset": {"name": "login"}}]
    actual = [{"name": "forecast2"}, {"name": "login", "x": 1}, {"name": "add"}]

    assert differences({"tools": tools}, {"tools": actual}) == [
        "tools: missing: forecast; not expected: forecast2, add"
    ]
    assert differences([{"uri": "a:1", "name": "n"}, {"uri": "a:2", "name": "n"}], [{"uri": "a:2", "name": "m"}]) == [
        "messages: missing: a:1",
        '[0].name: expected "n", got "m"',
    ]


def test_json_types_are_compared():
    assert differences(1, True) == ["value: expected 1, got true"]
    assert differences(1, 1.0) == ["value: expected 1, got 1.0"]


def test_of_long_texts_the_first_difference_is_shown():
    (sentence,) = differences("a" * 5000 + "b", "a" * 5000 + "c")

    assert sentence.startswith("value: from character 5001 on, expected …")
    assert sentence.endswith('ac"') and len(sentence) < 250


def test_values_that_are_nested_too_deeply_are_a_difference():
    deep = json.loads("[" * 900 + "]" * 900)

    assert differences(json.loads("[" * 900 + "1" + "]" * 900), deep) == ["value: nested too deeply to compare"]


def test_numbers_that_are_not_finite_are_shown():
    assert differences(1, json.loads("[1e999]")) == ["value: expected 1, got [Infinity]"]


# --- Matchers


@pytest.mark.parametrize(
    ("expected", "matching", "other"),
    [
        ({"$any": "object"}, {"a": 1}, []),
        ({"$any": "number"}, 1, "1"),
        ({"$any": "integer"}, 1, 1.0),
        ({"a": {"$ignore": True}}, {}, {"b": 1}),
        ({"a": {"$ignore": True}}, {"a": [1]}, []),
        ({"$subset": {"a": 1}}, {"a": 1, "b": 2}, {"b": 2}),
        ({"$subset": {"a": {"$any": "string"}}}, {"a": "x"}, {"a": 1}),
        ({"$unordered": [1, 2]}, [2, 1], [2, 2]),
        ({"$unordered": [{"$any": "integer"}, 1]}, [1, 5], [1, "5"]),
        ({"$unordered": [{"$any": "integer"}, {"$any": "number"}, 1]}, [1.5, 1, 5], [1, 5]),
        ({"$json": {"a": [{"$any": "null"}]}}, '{ "a": [null] }', '{"a":[0]}'),
        ({"$json": 1}, "1", 1),
        ({"$json": 1}, "1", "{"),
        ({"$capture": "c", "$any": "string"}, "x", 1),
        ([{"$capture": "c"}, {"$ref": "c"}], [[1], [1]], [1, 2]),
        ({"$literal": {"$any": "string"}}, {"$any": "string"}, "x"),
        ({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}),
        ({"$ref": "A", "title": "x"}, {"$ref": "A", "title": "x"}, {"$ref": "B", "title": "x"}),
    ],
)  # fmt: skip
def test_matcher(expected, matching, other):
    assert differences(expected, matching) == []
    assert differences(expected, other)


@pytest.mark.needs("re2")
def test_an_expression_matches_the_whole_text():
    assert differences({"$re": "[0-9]+"}, "12") == []
    assert differences({"$re": "[0-9]+"}, "12a") == ['value: expected a string that matches "[0-9]+", got "12a"']
    assert differences({"$re": "[0-9]+"}, 12)
    assert differences({"$re": "(a+)+b"}, "a" * 100_000)  # at once


def test_captured_values_are_compared_without_matchers():
    odd = {"$any": "string"}
    bindings = {}

    assert list(match.differences({"$capture": "c"}, odd, bindings=bindings)) == []
    assert bindings == {"c": odd}
    assert list(match.differences({"$ref": "c"}, odd, bindings=bindings)) == []
    assert list(match.differences({"$ref": "c"}, "x", bindings=bindings)) == [
        'value: expected {"$any":"string"}, got "x"'
    ]


def test_a_reference_without_a_captured_value_is_a_difference():
    assert differences({"$ref": "c"}, 1) == ["value: nothing was captured as c, got 1"]


def test_lists_in_any_order_are_paired_completely():
    wide = [{"$subset": {key: {"$any": "integer"}}} for key in "abcdefgh"]
    actual = [{key: 1, "abcdefgha"[index + 1]: 1} for index, key in enumerate("abcdefgh")]

    assert differences({"$unordered": wide}, actual[1:] + actual[:1]) == []
    assert differences({"$unordered": [1, 2, 3]}, [3, 1, 4]) == ["[2]: expected 2, got 4"]
    assert differences({"$unordered": [1, 2]}, [3, 4, 5]) == [
        "value: missing in any order, expected 1",
        "value: missing in any order, expected 2",
        "[0]: not expected, got 3",
        "[1]: not expected, got 4",
        "[2]: not expected, got 5",
    ]


def test_messages_in_any_order_are_paired_completely():
    wide, narrow = {"$subset": {"jsonrpc": "2.0"}}, {"jsonrpc": "2.0", "method": "a"}
    other = {"jsonrpc": "2.0", "method": "b"}

    assert match.sort_like([wide, narrow], [narrow, other]) == [other, narrow]
    assert match.pairs([wide, narrow, narrow], [narrow, other]) == {0: 1, 1: 0}


def test_a_message_can_refer_to_what_another_one_captures():
    expected = [{"id": {"$capture": "id"}, "a": 1}, {"of": {"$ref": "id"}}]

    assert match.sort_like(expected, [{"of": 8}, {"of": 7}, {"id": 7, "a": 1}]) == [
        {"id": 7, "a": 1},
        {"of": 7},
        {"of": 8},
    ]


def test_values_are_captured_from_lists_in_any_order():
    bindings = {}
    expected = {"$unordered": [{"id": {"$capture": "b"}, "n": "b"}, {"id": {"$capture": "a"}, "n": "a"}]}

    assert list(match.differences(expected, [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}], bindings=bindings)) == []
    assert bindings == {"a": 1, "b": 2}


# --- Updates


def test_matchers_that_still_match_stay():
    expected = {
        "v": {"$var": "revision"},
        "t": {"$any": "string"},
        "l": [1],
        "x": {"$any": "string"},
        "i": {"$ignore": True},
        "s": {"$subset": {"a": {"$any": "string"}, "b": 1}},
        "u": {"$unordered": [{"$any": "string"}, 1]},
        "j": {"$json": {"a": {"$any": "string"}, "b": 1}},
        "c": {"$capture": "c", "$any": "string"},
        "r": {"$ref": "c"},
    }
    actual = {
        "v": "2025-11-25",
        "t": "y",
        "l": [1, 2],
        "x": 5,
        "s": {"a": "x", "b": 2, "c": 3},
        "u": [2, "x"],
        "j": '{"a":"x","b":2}',
        "c": 5,
        "r": 5,
    }

    assert match.update(expected, actual, "2025-11-25") == {
        "v": {"$var": "revision"},
        "t": {"$any": "string"},
        "l": [1, 2],
        "x": 5,
        "i": {"$ignore": True},
        "s": {"$subset": {"a": {"$any": "string"}, "b": 2}},
        "u": {"$unordered": [2, {"$any": "string"}]},
        "j": {"$json": {"a": {"$any": "string"}, "b": 2}},
        "c": {"$capture": "c"},
        "r": {"$ref": "c"},
    }


@given(values | odd)
def test_a_recorded_value_equals_itself(value):
    assert differences(matchers.literal(value), value) == []


@given(values, st.data())
def test_a_mutated_value_is_noticed(value, data):
    def mutate(inner):
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(inner)))
            return {**inner, key: mutate(inner[key])}
        if isinstance(inner, list) and inner and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(inner) - 1))
            return [*inner[:index], mutate(inner[index]), *inner[index + 1 :]]
        return data.draw(
            values.filter(lambda other: json.dumps(other, sort_keys=True) != json.dumps(inner, sort_keys=True))
        )

    assert differences(matchers.literal(value), mutate(value))


@given(odd, values | odd)
def test_no_value_raises(expected, actual):
    differences(expected, actual)
    list(matchers.faults(expected, (), set(), False))
    list(matchers.faults(expected, (), set(), True))


@given(values | odd)
def test_a_recorded_value_has_no_faults(value):
    assert list(matchers.faults(matchers.literal(value), (), set(), False)) == []
    assert list(matchers.faults(matchers.literal(value), (), set(), True)) == []
    assert matchers.bind(matchers.literal(value), {}) == value


@given(values | odd, values | odd)
def test_an_updated_value_matches(expected, actual):
    assert differences(matchers.resolve(match.update(expected, actual, "r"), "r"), actual) == []
