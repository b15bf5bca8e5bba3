"""Schemas without references, which accept the same values."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.schema.inlined import _DEEPEST, inlined

OPTIONAL = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None, "title": "N"}


def test_references_are_replaced():
    schema = {
        "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b~1c"}}}, "b/c": {"type": "string"}},
        "properties": {"x": {"$ref": "#/$defs/a", "description": "X"}, "y": {"items": {"$ref": "#/$defs/b~1c"}}},
    }

    assert inlined(schema) == {
        "properties": {
            "x": {"type": "object", "properties": {"b": {"type": "string"}}, "description": "X"},
            "y": {"items": {"type": "string"}},
        }
    }


def test_a_value_or_null_is_a_list_of_types():
    assert inlined(OPTIONAL) == {"type": ["integer", "null"], "minimum": 0, "default": None, "title": "N"}


RECURSIVE = {"$defs": {"t": {"properties": {"child": {"$ref": "#/$defs/t"}}}}, "items": {"$ref": "#/$defs/t"}}
DOUBLED = {
    "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)} | {"40": {}},
    "items": {"$ref": "#/$defs/0"},
}


@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        DOUBLED,
        {"$ref": "#/$defs/none"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"maxLength": 5}}},  # both hold
        {"properties": {"a": {"$anchor": "here"}, "b": {"$ref": "#here"}}},
        {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 1}]},
        {"anyOf": [{"type": "integer"}, True]},
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        {"anyOf": [{"type": "string", "title": "A"}, {"type": "null", "title": "B"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "type": "string"},
        {"anyOf": [{"type": "string", "required": ["a"]}, {"type": "object"}]},  # it restricts no string
        {"properties": {"a": {}}, "anyOf": [{"type": "object", "additionalProperties": False}]},
        True,
        [],
    ],
)
def test_other_schemas_stay(schema):
    assert inlined(schema) == schema


@pytest.mark.parametrize(
    ("wrap", "levels"),
    [(lambda inner: {"not": inner}, _DEEPEST - 2), (lambda inner: {"allOf": [inner]}, _DEEPEST // 2 - 1)],
)
def test_a_schema_of_too_many_levels_stays(wrap, levels):
    schema, plain = {"$ref": "#/$defs/a"}, {"type": "string"}
    for _ in range(levels):
        schema, plain = wrap(schema), wrap(plain)
    definitions = {"$defs": {"a": {"type": "string"}}}

    assert inlined(definitions | schema) == plain
    assert inlined(definitions | wrap(schema)) == definitions | wrap(schema)


KEYWORDS = st.sampled_from(
    [{"minimum": 1}, {"maxLength": 1}, {"maxItems": 0}, {"required": ["a"]}, {"enum": [1, "a"]}, {"$ref": "#/$defs/d"}]
)
BRANCHES = st.builds(
    lambda type_, more: {"type": type_, **more},
    st.sampled_from(["integer", "string", "array", "object", "null", "boolean"]),
    st.one_of(st.just({}), KEYWORDS),
)
VALUES = st.sampled_from([None, True, 0, 1, 2, "", "a", "bb", [], [1], {}, {"a": 1}, 1.5])


@given(st.lists(BRANCHES, min_size=1, max_size=3), st.one_of(st.just({}), KEYWORDS), VALUES)
def test_the_same_values_are_valid(branches, more, value):
    schema = {"anyOf": branches, **more, "$defs": {"d": {"maximum": 1, "maxLength": 1}}}
    validators = (jsonschema.Draft202012Validator(each) for each in (schema, inlined(schema)))

    assert len({validator.is_valid(value) for validator in validators}) == 1
