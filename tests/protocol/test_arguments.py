"""JSON Schema as ordered violations. `jsonschema` decides; the quick look must never accept what it does not."""

import os

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.protocol import arguments
from tmkb.schema import keywords, paths

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


def found(spec, value, schema=SCHEMA):
    return [(v.path, v.keyword) for v in arguments.violations(schema, value, spec)]


def test_a_valid_value_has_no_violations(spec):
    assert found(spec, {"b": "xx", "c": {"d": 3}, "e": ["x"]}) == []


def test_violations_come_in_the_order_of_the_schema_and_unknown_keys_as_sent(spec):
    value = {"z": 1, "e": ["x", 5, 6], "c": {"d": 1}, "b": "x", "y": 2, "a": "q"}

    assert found(spec, value) == [
        (("a",), "enum"),
        (("b",), "minLength"),
        (("c", "d"), "minimum"),
        (("e", 1), "type"),
        (("e", 2), "type"),
        (("z",), "additionalProperties"),
        (("y",), "additionalProperties"),
    ]


@pytest.mark.parametrize(("text", "keyword"), [("x", "minLength"), ("xx", None), ("xxx", None), ("xxxx", "maxLength")])
def test_the_length_of_a_text_is_checked(spec, text, keyword):
    """The schema has only keywords of `plainly_valid`."""
    assert found(spec, text, SCHEMA["properties"]["b"]) == ([((), keyword)] if keyword else [])


def test_violations_inside_an_object_come_in_its_own_order(spec):
    inner = {"properties": {"first": {"type": "string"}, "second": {"type": "string"}}, "additionalProperties": False}
    schema = {"properties": {"one": {"type": "array", "items": inner}, "two": {"properties": {"deep": inner}}}}
    value = {"z": 1, "second": 2, "y": 3, "first": 4}
    expected = [("first", "type"), ("second", "type"), ("z", "additionalProperties"), ("y", "additionalProperties")]

    assert found(spec, {"two": {"deep": value}, "one": [value, value]}, schema) == [
        ((*path, name), keyword) for path in (("one", 0), ("one", 1), ("two", "deep")) for name, keyword in expected
    ]


def test_each_missing_name_is_reported_once(spec):
    assert found(spec, {}) == [(("b",), "required"), (("c",), "required")]
    assert found(spec, {"b": "xx", "c": {}}) == [(("c", "d"), "required")]


def test_an_argument_with_an_empty_name_is_named(spec):
    (violation,) = arguments.violations(SCHEMA, {"b": "xx", "c": {"d": 3}, "": 1}, spec, "arguments")

    assert violation.fields["field"] == ""


def test_a_wrong_type_hides_other_violations(spec):
    assert found(spec, {"a": 5, "b": "xx", "c": {"d": 3}}) == [(("a",), "type")]


def test_fields_contain_the_expected_and_the_received_type(spec):
    (violation,) = arguments.violations(SCHEMA, {"b": "xx", "c": {"d": "3"}}, spec)

    assert violation.fields["field"] == "c.d"
    assert violation.fields["an_expected"] == "an integer"
    assert violation.fields["received"] == "string"


def test_several_types_are_listed(spec):
    (violation,) = arguments.violations({"type": ["integer", "null"]}, "x", spec)

    assert violation.fields["expected"] == "integer, null"


def test_keywords_without_a_message_use_the_general_one(spec):
    errors = spec["revisions"]["2025-11-25"]["errors"]
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}}
    violations = arguments.violations(schema, {"n": 7}, spec)

    (told,) = arguments.failures(violations, "tool", {}, errors)
    assert told.sentence == "Invalid n: 7 is not a multiple of 5"


def test_a_reference_to_the_network_is_not_followed(spec):
    with pytest.raises(Exception, match="Unresolvable"):
        arguments.violations({"$ref": "http://127.0.0.1:9/schema.json"}, {}, spec)


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
def test_plainly_valid_accepts_only_valid_values(schema, value):
    if arguments.plainly_valid(schema, value):
        jsonschema.Draft202012Validator(schema).validate(value)


@given(value=values)
def test_violations_are_those_of_the_reference(spec, value):
    expected = jsonschema.Draft202012Validator(SCHEMA).is_valid(value)

    assert (arguments.violations(SCHEMA, value, spec) == []) is expected


def test_a_required_property_needs_no_schema(spec):
    found = arguments.violations({"type": "object", "required": ["b", "a"], "properties": {"a": {}}}, {}, spec)

    assert [violation.path for violation in found] == [("a",), ("b",)]


def test_the_value_itself_has_a_name(spec):
    (found,) = arguments.violations({"minProperties": 1}, {}, spec, "arguments")

    assert found.fields["field"] == "arguments"


def test_twenty_are_described_and_the_rest_is_counted(spec):
    tool = {"name": "t", "input": SCHEMA}
    errors = spec["revisions"]["2025-11-25"]["errors"]
    given = {"b": "xx", "c": {"d": 3}, **{f"k{n}": 1 for n in range(23)}}

    sentences = [failure.sentence for failure in arguments.check(tool, given, spec, errors)[1]]

    assert sentences[:20] == [f"Unknown parameter 'k{n}'. Supported parameters: a, b, c, e" for n in range(20)]
    assert sentences[20:] == ["and 3 more"]


def test_twenty_are_all_described(spec):
    tool = {"name": "t", "input": SCHEMA}
    given = {"b": "xx", "c": {"d": 3}, "e": [1] * 20}

    assert len(arguments.check(tool, given, spec, spec["revisions"]["2025-11-25"]["errors"])[1]) == 20


def test_counting_stops(spec):
    tool = {"name": "t", "input": SCHEMA}
    given = {"b": "xx", "c": {"d": 3}, "e": [1] * 5000}

    *_, last = arguments.check(tool, given, spec, spec["revisions"]["2025-11-25"]["errors"])[1]

    assert last.sentence == "and at least 980 more"


@pytest.mark.needs("re2")
@pytest.mark.parametrize("length", [28, 100_000])
@pytest.mark.parametrize("expression", ["^(a+)+$", "a+b$", "^(a|a)*$"])
def test_no_expression_backtracks(spec, expression, length):
    schema = {"properties": {"x": {"pattern": expression}}, "patternProperties": {expression: {}}}
    value = {"x": "a" * length + "!", "a" * length + "!": 1}

    assert found(spec, value, schema) == [(("x",), "pattern")]


@pytest.mark.needs("re2")
@pytest.mark.parametrize("text", ["\ud800", "\udfff😀"])
def test_half_a_surrogate_pair_is_matched_as_any_character(spec, text):
    assert found(spec, text, {"pattern": "^.+$"}) == []
    assert found(spec, text, {"pattern": "^[a-z]+$"}) == [((), "pattern")]


@given(st.lists(values, max_size=6))
def test_unique_items_agrees_with_the_reference(value):
    schema = {"uniqueItems": True}

    assert [*keywords.errors(schema, value)] == [] or not jsonschema.Draft202012Validator(schema).is_valid(value)
    assert [*keywords.errors(schema, value)] != [] or jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.needs("re2")
def test_keys_that_an_expression_describes_are_known(spec):
    schema = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}

    assert found(spec, {"x-a": "", "y": 1, "x-b": 2}, schema) == [
        (("y",), "additionalProperties"),
        (("x-b",), "type"),
    ]


def test_the_meta_schema_lists_the_fields_of_violations():
    with open(os.path.join(paths.SCHEMAS, "meta", "errors.yaml"), encoding="utf-8") as file:
        text = " ".join(file.read().split())

    assert f"can use {', '.join(arguments.FIELDS)}." in text
