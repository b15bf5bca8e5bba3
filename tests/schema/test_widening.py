"""The direction of changes of a JSON Schema, compared with what `jsonschema` accepts."""

import json

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tmkb.schema import widening
from tmkb.schema.diff import _SIDES

NAMES = st.sampled_from(["a", "b", "c"])
FEW = [None, True, 0, 1, 1.5, 2, "", "a", "bb"]
VALUES = st.sampled_from(FEW)
OBJECTS = [
    {},
    *({name: value} for name in "abc" for value in FEW),
    *({"a": 1, "b": v} for v in FEW),
    {"a": 1, "b": 1, "c": 1},
]
INSTANCES = [
    *FEW,
    [],
    *([v] for v in FEW),
    [1, 1],
    [1, "a"],
    ["a", 1],
    [0, 1, 2],
    *OBJECTS,
    *({"a": o} for o in OBJECTS[:12]),
]
NUMBER = st.integers(0, 3)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
PLAIN = {
    "description": st.sampled_from(["x", "y"]),
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=4, unique_by=repr),
    "const": VALUES,
    "pattern": st.sampled_from(["a", "b"]),
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"], NUMBER),
    **dict.fromkeys(["minItems", "maxItems", "minProperties", "maxProperties"], NUMBER),
}


def schemas(keywords):
    return st.lists(st.one_of([st.tuples(st.just(key), value) for key, value in keywords.items()]), max_size=4).map(
        dict
    )


def nested(inner):
    """All keywords, with ``inner`` schemas."""
    return {
        **PLAIN,
        **dict.fromkeys(["propertyNames", "contains", "not", "if", "then", "else"], inner),
        **dict.fromkeys(["additionalProperties", "items"], inner | st.booleans()),
        **dict.fromkeys(["anyOf", "allOf", "oneOf", "prefixItems"], st.lists(inner, min_size=1, max_size=2)),
        **dict.fromkeys(["unevaluatedItems", "unevaluatedProperties"], st.booleans()),
        "properties": st.dictionaries(NAMES, inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=1),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        "minContains": NUMBER,
    }


def whole(schema):
    """``schema``, with what a `$ref` refers to."""
    return {"$defs": {"d": {}}, **schema} if "$ref" in schema else schema


INNER = schemas(PLAIN) | schemas(nested(schemas(PLAIN)))
TOP = nested(INNER) | {"$ref": st.just("#/$defs/d"), "$defs": st.fixed_dictionaries({"d": INNER})}
SCHEMAS = schemas(TOP).map(whole)


@st.composite
def edited(draw):
    """A schema, and a copy with keywords added, removed or replaced at its top level or in its properties."""
    old, keywords = draw(st.tuples(schemas(PLAIN), st.just(PLAIN)) | st.tuples(SCHEMAS, st.just(TOP)))
    return old, whole(draw(edits(old, keywords)))


@st.composite
def edits(draw, old, keywords):
    new = dict(old)
    for key in draw(st.lists(st.sampled_from([*old, *keywords]), min_size=1, max_size=2)):
        if draw(st.booleans()):
            new.pop(key, None)
        elif key == "properties" and new.get(key):
            name = draw(st.sampled_from(sorted(new[key])))
            new[key] = {**new[key], name: draw(edits(new[key][name], PLAIN))}
        elif key in keywords:
            new[key] = draw(keywords[key])
    return new


def sent(old, new, value):
    """``value`` without the names that only ``new`` offers: a client sends only what was offered."""
    if isinstance(value, list):
        items = old.get("items", {}), new.get("items", {})
        return [sent(*items, each) if all(isinstance(i, dict) for i in items) else each for each in value]
    if not isinstance(value, dict):
        return value
    before, after = ({} if s is True else s for s in (old, new))
    offered, now = (s.get("properties", {}) for s in (before, after))
    kept = {}
    for name, inner in value.items():
        if name in offered and name in now:
            pair = offered[name], now[name]
        elif name in now:
            continue
        else:
            pair = tuple(s.get("additionalProperties", {}) for s in (before, after))
        kept[name] = sent(*pair, inner) if all(isinstance(schema, dict) for schema in pair) else inner
    return kept


def impacts(side, old, new):
    return {_SIDES[side].get(found.direction, "breaking") for found in widening.differences(old, new)}


@pytest.mark.full
@given(edited())
@example(({}, {"properties": {"a": {"type": "string"}}}))
@example(({"required": ["a"]}, {"required": ["a"], "properties": {"a": {"type": "string"}}}))
@example(({"enum": [1]}, {"enum": [True]}))
@example(({"minContains": 0, "contains": {"type": "null"}}, {"contains": {"type": "null"}}))
@example(({"additionalProperties": {"type": "integer"}}, {"properties": {"a": {"type": "string"}}}))
def test_valid_values_stay_valid_unless_breaking(pair):
    old, new = pair
    before, after = (jsonschema.Draft202012Validator(schema) for schema in pair)
    offered = [sent(old, new, value) for value in INSTANCES]
    if "breaking" not in impacts("input", old, new):
        assert [value for value in offered if before.is_valid(value) and not after.is_valid(value)] == []
    if "breaking" not in impacts("output", old, new):
        assert [value for value in offered if after.is_valid(value) and not before.is_valid(value)] == []


@given(SCHEMAS)
def test_a_schema_does_not_differ_from_itself(schema):
    assert list(widening.differences(schema, schema)) == []


@given(edited())
def test_differences(pair):
    old, new = pair
    if widening.same(old, new):
        assert list(widening.differences(old, new)) == []
    elif "true" not in json.dumps(pair):  # the schemas true and {} mean the same
        assert list(widening.differences(old, new)) != []


def at(schema, path):
    """The value at ``path``; None if there is none."""
    for step in path:
        schema = {} if schema is True else schema
        inside = step in schema if isinstance(schema, dict) else isinstance(schema, list) and step < len(schema)
        if not inside:
            return None
        schema = schema[step]
    return schema


@given(edited())
def test_a_difference_has_both_values_at_its_path(pair):
    for each in widening.differences(*pair):
        values = [at(schema, each.path) for schema in pair]
        for one, other in zip((each.before, each.after), values, strict=True):
            assert (
                one in (None, {}, []) or widening.same(one, other) or any(widening.same(one, entry) for entry in other)
            )
        assert {"+": each.before is None, "-": each.after is None, "~": True}[each.sign]


@pytest.mark.parametrize(
    ("old", "new", "path", "direction"),
    [
        ({"type": "integer"}, {"type": "number"}, ("type",), "wider"),
        ({"type": ["string", "null"]}, {"type": "string"}, ("type",), "narrower"),
        ({"type": "string"}, {"type": "integer"}, ("type",), "either"),
        ({}, {"type": "string"}, ("type",), "narrower"),
        ({"type": "string"}, {}, ("type",), "wider"),
        ({"type": "string"}, {"type": ["string"]}, ("type",), "words"),
        ({"type": ["number", "integer"]}, {"type": "number"}, ("type",), "words"),
        ({"minItems": 2}, {"minItems": 1}, ("minItems",), "wider"),
        ({"exclusiveMaximum": 2}, {"exclusiveMaximum": 1}, ("exclusiveMaximum",), "narrower"),
        ({}, {"minimum": 1}, ("minimum",), "narrower"),
        ({"maximum": 1}, {}, ("maximum",), "wider"),
        ({}, {"enum": [1]}, ("enum",), "narrower"),
        ({"enum": [1, 2]}, {"enum": [1]}, ("enum",), "narrower"),
        ({}, {"required": ["a"]}, ("required",), "narrower"),
        ({"const": 1}, {"const": 2}, ("const",), "either"),
        ({}, {"const": 1}, ("const",), "narrower"),
        ({}, {"items": {"type": "string"}}, ("items",), "narrower"),
        ({"items": {"type": "string"}}, {}, ("items",), "wider"),
        ({"items": {}}, {}, ("items",), "words"),
        ({"allOf": [{"minimum": 1}, {"maximum": 9}]}, {"allOf": [{"maximum": 9}]}, ("allOf",), "wider"),
        ({}, {"allOf": [{"minimum": 1}]}, ("allOf",), "either"),
        ({"$defs": {"d": {}}}, {"$defs": {}}, ("$defs", "d"), "either"),
        ({"$defs": {}}, {"$defs": {"d": {}}}, ("$defs", "d"), "words"),
        ({"not": {"minimum": 1}}, {"not": {"minimum": 2}}, ("not",), "either"),
        ({"anyOf": [{}]}, {"anyOf": [{}], "properties": {"a": {}}}, ("properties", "a"), "either"),
        ({"$id": "a", "title": "x"}, {"$id": "a", "title": "y"}, ("title",), "words"),
        ({"items": False}, {"items": {}}, ("items",), "wider"),
        ({"minimum": 1}, {"minimum": 2}, ("minimum",), "narrower"),
        ({"maxLength": 1}, {"maxLength": 2}, ("maxLength",), "wider"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, ("enum",), "wider"),
        ({"required": ["a"]}, {"required": []}, ("required",), "wider"),
        ({"default": 1}, {"default": 2}, ("default",), "either"),
        ({}, {"default": 1}, ("default",), "words"),
        ({"default": 1}, {}, ("default",), "either"),
        ({"anyOf": [{"minimum": 1}]}, {"anyOf": [{"minimum": 1}, {"maximum": 0}]}, ("anyOf",), "wider"),
        ({"anyOf": [{"minimum": 1}, {"maximum": 0}]}, {"anyOf": [{"maximum": 0}]}, ("anyOf",), "narrower"),
        ({"allOf": [{"minimum": 1}]}, {"allOf": [{"maximum": 9}, {"minimum": 1}]}, ("allOf",), "narrower"),
        ({"oneOf": [{"minimum": 1}]}, {"oneOf": [{"minimum": 1}, {"maximum": 0}]}, ("oneOf",), "either"),
        ({"anyOf": [{"minimum": 1}]}, {"anyOf": [{"minimum": 2}, {"maximum": 0}]}, ("anyOf",), "either"),
        ({"x-mine": 1}, {"x-mine": 2}, ("x-mine",), "either"),
        ({"additionalProperties": False}, {}, ("additionalProperties",), "wider"),
        ({}, {"additionalProperties": True}, ("additionalProperties",), "words"),
        ({"properties": {"a": {}}}, {"properties": {}}, ("properties", "a"), "gone"),
        ({"additionalProperties": False}, {"additionalProperties": False, "properties": {"a": {}}}, ("properties", "a"), "new"),
        ({"additionalProperties": False, "required": ["a"]}, {"additionalProperties": False, "required": ["a"], "properties": {"a": {}}}, ("properties", "a"), "either"),
        ({"additionalProperties": {"minLength": 1}}, {"additionalProperties": {"minLength": 1}, "properties": {"a": {}}}, ("properties", "a"), "new"),
        ({"additionalProperties": {"minLength": 1}}, {"additionalProperties": {"minLength": 1}, "properties": {"a": {"minLength": 2}}}, ("properties", "a"), "either"),
        ({"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"minimum": 2}}}, ("properties", "a", "minimum"), "narrower"),
        ({}, {"properties": {}}, ("properties",), "words"),
        ({"additionalProperties": {"additionalProperties": False}}, {"additionalProperties": {"additionalProperties": False}, "properties": {"b": {"additionalProperties": False, "properties": {"a": {}}}}}, ("properties", "b"), "new"),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, ("enum",), "words"),
        ({"enum": ["a"]}, {}, ("enum",), "wider"),
        ({}, {"$defs": {}}, ("$defs",), "words"),
        ({"items": {"title": "x"}}, {"items": {"title": "y"}}, ("items", "title"), "words"),
        ({"items": True}, {"items": False}, ("items",), "narrower"),
        ({"anyOf": [{"maximum": 1}]}, {"anyOf": [{"maximum": 2}]}, ("anyOf", 0, "maximum"), "wider"),
        ({"oneOf": [{"maximum": 1}]}, {"oneOf": [{"maximum": 2}]}, ("oneOf", 0, "maximum"), "either"),
        ({"$ref": "#/$defs/d", "$defs": {"d": {"maximum": 1}}}, {"$ref": "#/$defs/d", "$defs": {"d": {"maximum": 2}}}, ("$defs", "d", "maximum"), "either"),
    ],
)  # fmt: skip
def test_direction(old, new, path, direction):
    (found,) = widening.differences(old, new)

    assert (found.path, found.direction) == (path, direction)
