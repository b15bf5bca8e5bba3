"""JSON Schema as ordered violations. `jsonschema` decides; the quick look must never accept what it does not."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.engine import validation

SCHEMA = {
    "type": "object",
    "required": ["b", "c"],
    "additionalProperties": False,
    "properties": {
        "a": {"type": "string", "enum": ["x", "y"]},
        "b": {"type": "string", "minLength": 2, "maxLength": 3},
        "c": {"type": "object", "required": ["d"], "properties": {"d": {"type": "integer", "minimum": 3}}},
        "e": {"type": "array", "items": {"type": "string"}},
    },
}


@pytest.fixture
def types(spec):
    return spec["types"]


def found(types, value, schema=SCHEMA):
    return [(v.path, v.keyword) for v in validation.violations(schema, value, types)]


def test_what_is_valid_has_no_violations(types):
    assert found(types, {"b": "xx", "c": {"d": 3}, "e": ["x"]}) == []


def test_violations_come_in_the_order_of_the_schema_and_unknown_keys_as_sent(types):
    value = {"z": 1, "e": ["x", 5, 6], "c": {"d": 1}, "b": "x", "y": 2, "a": "q"}

    assert found(types, value) == [
        (("a",), "enum"),
        (("b",), "minLength"),
        (("c", "d"), "minimum"),
        (("e", 1), "type"),
        (("e", 2), "type"),
        (("z",), "additionalProperties"),
        (("y",), "additionalProperties"),
    ]


def test_each_missing_name_is_told_once(types):
    assert found(types, {}) == [(("b",), "required"), (("c",), "required")]
    assert found(types, {"b": "xx", "c": {}}) == [(("c", "d"), "required")]


def test_a_wrong_type_hides_what_else_is_wrong_there(types):
    assert found(types, {"a": 5, "b": "xx", "c": {"d": 3}}) == [(("a",), "type")]


def test_fields_say_what_was_wanted_and_what_came(types):
    (violation,) = validation.violations(SCHEMA, {"b": "xx", "c": {"d": "3"}}, types)

    assert violation.fields["field"] == "c.d"
    assert violation.fields["an_expected"] == "an integer"
    assert violation.fields["received"] == "string"


def test_several_types_are_listed(types):
    (violation,) = validation.violations({"type": ["integer", "null"]}, "x", types)

    assert violation.fields["expected"] == "integer, null"


def test_keywords_without_a_sentence_of_their_own_are_told_by_the_general_one(spec, types):
    errors = spec["revisions"]["2025-11-25"]["errors"]
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}}
    violations = validation.violations(schema, {"n": 7}, types)

    (told,) = validation.failures(violations, "tool", {}, errors)
    assert told.sentence == "Invalid n: 7 is not a multiple of 5"


def test_a_reference_to_the_network_is_not_followed(types):
    with pytest.raises(Exception, match="Unresolvable"):
        validation.violations({"$ref": "http://127.0.0.1:9/schema.json"}, {}, types)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.sampled_from(["", "x", "xx", "xxxx"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e"]), inner, max_size=4)
    ),
    max_leaves=8,
)
leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "object", "array", "boolean", "null"]),
        "enum": st.lists(st.sampled_from(["x", "xx", 1, None]), min_size=1, max_size=3),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minimum": st.integers(-3, 3),
        "description": st.just("text"),
        "default": st.just("x"),
    },
)
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array"]),
            "properties": st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
            "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
            "additionalProperties": st.booleans(),
            "items": inner,
        },
    ),
    max_leaves=5,
)


@given(schemas, values)
def test_the_quick_look_accepts_only_what_is_valid(schema, value):
    if validation.plainly_valid(schema, value):
        jsonschema.Draft202012Validator(schema).validate(value)


@given(value=values)
def test_violations_are_those_of_the_reference(types_of_spec, value):
    expected = jsonschema.Draft202012Validator(SCHEMA).is_valid(value)

    assert (validation.violations(SCHEMA, value, types_of_spec) == []) is expected


@pytest.fixture(scope="session")
def types_of_spec(spec):
    return spec["types"]


def test_what_is_required_need_not_be_described(types):
    found = validation.violations({"type": "object", "required": ["b", "a"], "properties": {"a": {}}}, {}, types)

    assert [violation.path for violation in found] == [("a",), ("b",)]


def test_the_value_itself_has_a_name(types):
    (found,) = validation.violations({"minProperties": 1}, {}, types, "arguments")

    assert found.fields["field"] == "arguments"
