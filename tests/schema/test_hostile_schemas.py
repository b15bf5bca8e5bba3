"""JSON Schemas of tools that would keep a server busy or make each call fail are refused."""

import re
import time

import pytest

from tmkb.schema import jsonschemas, keywords

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXPRESSION = "^(a+)+$"
SLOW = "a" * 36 + "!"


def errors(schema, value):
    return [error.message for error in keywords.errors(schema, value)]


def rules(schema):
    return [(fault[0], fault[2]) for fault in jsonschemas.faults(schema)]


@pytest.fixture
def quick(monkeypatch):
    """Hold a test to a time that only exponential work exceeds, and let Python's `re` match nothing."""
    pytest.importorskip("re2")
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"x": {"$schema": DIALECT, "pattern": EXPRESSION}}}, {"x": SLOW}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$schema": DIALECT, "pattern": EXPRESSION}}}, SLOW),
        ({"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EXPRESSION}}, [SLOW]),
        ({"patternProperties": {EXPRESSION: {}}, "unevaluatedProperties": False}, {SLOW: 1}),
        ({"allOf": [{"patternProperties": {EXPRESSION: {}}}], "unevaluatedProperties": False}, {SLOW: 1}),
    ],
)
def test_every_expression_is_matched_by_re2(quick, monkeypatch, schema, value):
    def search(*_):
        raise AssertionError("matched by Python's re")

    monkeypatch.setattr(re, "search", search)

    assert len(errors(schema, value)) == 1


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"properties": {"a": True}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"properties": {"a": True}, "unevaluatedProperties": False}, {"b": 1}, False),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}, True),
        (
            {"anyOf": [{"required": ["a"], "properties": {"a": True}}, True], "unevaluatedProperties": False},
            {"b": 1},
            False,
        ),
        (
            {"$ref": "#/$defs/d", "$defs": {"d": {"properties": {"a": True}}}, "unevaluatedProperties": False},
            {"a": 1},
            True,
        ),
        (
            {
                "if": {"properties": {"a": {"const": 1}}},
                "else": {"properties": {"b": True}},
                "unevaluatedProperties": False,
            },
            {"a": 2, "b": 1},
            False,
        ),
        (
            {
                "if": {"properties": {"a": {"const": 1}}},
                "then": {"properties": {"b": True}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 1},
            True,
        ),
        (
            {"dependentSchemas": {"a": {"properties": {"a": True, "b": True}}}, "unevaluatedProperties": False},
            {"a": 1, "b": 1},
            True,
        ),
        ({"additionalProperties": {"type": "integer"}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"a": 1}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"a": "1"}, False),
    ],
)
def test_unevaluated_properties(schema, value, valid):
    assert (errors(schema, value) == []) is valid


def chain(length):
    links = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
    return {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**links, f"a{length}": {"type": "string"}}}


def doubled(levels, entering=False):
    def twice(n):
        both = {"allOf": [{"$ref": f"#/$defs/a{n}"}, {"$ref": f"#/$defs/a{n}"}]}
        return {"items": both} if entering else both

    return {"$ref": "#/$defs/a0", "$defs": {**{f"a{n}": twice(n + 1) for n in range(levels)}, f"a{levels}": {}}}


def unevaluated(levels):
    schema = {}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


@pytest.mark.parametrize("schema", [doubled(40), doubled(40, True), unevaluated(30)])
def test_exponential_schemas_are_refused(schema):
    assert [rule for _, rule in rules(schema)] == ["many_visits"]


def test_a_long_chain_of_references_is_refused():
    assert [rule for _, rule in rules(chain(600))] == ["long_chain"]


def test_accepted_schemas_can_validate():
    assert rules(chain(60)) == []
    assert len(errors(chain(60), {"x": 1})) == 1
    assert rules(doubled(8)) == []


def test_a_recursive_schema_is_accepted():
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}}}

    assert rules(tree) == []


@pytest.mark.parametrize(
    ("divisor", "number", "valid"),
    [
        (0.01, 10**400, False),
        (0.5, 10**400, True),
        (0.01, 10**4000 + 1, False),
        (1e-300, 1e300, False),
        (0.5, 2, True),
        (3, 10**400, False),
        (0.5, 2.25, False),
    ],
)
def test_multiples_of_any_size(divisor, number, valid):
    assert (errors({"multipleOf": divisor}, number) == []) is valid
