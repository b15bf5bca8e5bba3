"""JSON Schemas of tools that would keep a server busy or make each call fail are refused."""

import re
import time

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import Problem
from tmkb.schema import jsonschemas, keywords, problems

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXPRESSION = "^(a+)+$"
SLOW = "a" * 36 + "!"


def errors(schema, value):
    return [error.message for error in keywords.errors(schema, value)]


def rules(schema):
    """Return the path and the rule of each fault. Its sentence has all fields."""
    faults = [*jsonschemas.faults(schema)]
    assert all(problems.sentence(Problem(rule, "", **fields)) for _, _, rule, fields in faults)
    return [(fault[0], fault[2]) for fault in faults]


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
            {"if": {"required": ["a"]}, "else": {"properties": {"b": True}}, "unevaluatedProperties": False},
            {"b": 1},
            True,
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


NAMES = st.sampled_from(["a", "ab", "b"])
FLAT = {
    "const": st.sampled_from([1, {"a": 1}]),
    "required": st.lists(NAMES, max_size=1),
    "type": st.sampled_from(["object", "integer"]),
    "multipleOf": st.sampled_from([2, 0.5]),
    "uniqueItems": st.booleans(),
}


def conjunctions(keywords):
    return st.lists(st.one_of([st.tuples(st.just(key), value) for key, value in keywords.items()]), max_size=4).map(
        dict
    )


def applied(inner):
    """Our keywords, and those that apply schemas, with ``inner`` schemas."""
    inner = inner | st.booleans()
    return conjunctions(
        {
            **FLAT,
            **dict.fromkeys(["additionalProperties", "unevaluatedProperties", "if", "then", "else"], inner),
            **dict.fromkeys(["allOf", "anyOf", "oneOf"], st.lists(inner, min_size=1, max_size=2)),
            **dict.fromkeys(["properties", "dependentSchemas"], st.dictionaries(NAMES, inner, max_size=2)),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "$ref": st.just("#/$defs/d"),
        }
    )


MAPS = st.dictionaries(NAMES, st.sampled_from([1, 2, {"a": 1}, {"b": 1}]), max_size=3)


@given(applied(applied(conjunctions(FLAT))), conjunctions(FLAT), st.lists(MAPS, min_size=2, max_size=3))
def test_the_same_values_are_valid_as_for_jsonschema(schema, definition, values):
    pytest.importorskip("re2")
    schema = {"unevaluatedProperties": False, **schema, "$defs": {"d": {"properties": {"a": {}}, **definition}}}
    theirs = jsonschema.Draft202012Validator(schema)

    for value in (*values, values, 1):
        assert (errors(schema, value) == []) is theirs.is_valid(value)


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


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        (lambda more: {"allOf": [{"title": str(n)} for n in range(jsonschemas.VISITS - 1 + more)]}, "many_visits"),
        (lambda more: chain(jsonschemas.CHAIN - 2 + more), "long_chain"),
    ],
)
def test_a_schema_may_be_as_large_as_the_limit(schema, fits):
    assert [rule for _, rule in rules(schema(0))] == []
    assert [rule for _, rule in rules(schema(1))] == [fits]


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


def test_a_costly_schema_has_its_place():
    assert rules({"properties": {"x": doubled(40) | {"$id": "https://host/x"}}})[0] == (
        ("properties", "x", "$defs", "a28"),
        "many_visits",
    )


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"uniqueItems": True}, [1, {"a": [1]}, {"a": [1.0]}], "[1, {'a': [1]}, {'a': [1.0]}] has non-unique elements"),
        ({"uniqueItems": True}, [1, True, "1", 1.5], None),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], "[{'a': 1, 'b': 2}, {'b': 2, 'a': 1}] has non-unique elements"),
        ({"uniqueItems": False}, [1, 1], None),
        ({"uniqueItems": True}, "aa", None),
        pytest.param({"multipleOf": 3}, 10**5000, "The number is not a multiple of 3", id="huge"),
        ({"multipleOf": 3}, True, None),
        ({"multipleOf": 3}, 7, "7 is not a multiple of 3"),
        ({"pattern": "^a"}, "ba", "'ba' does not match '^a'"),
        ({"pattern": "^a"}, 5, None),
        ({"patternProperties": {"^a": {"const": 1}}}, {"b": 2, "ab": 2}, "1 was expected"),
        ({"patternProperties": {"^a": {"const": 1}}}, ["ab"], None),
        ({"unevaluatedProperties": False}, ["ab"], None),
        ({"unevaluatedProperties": False, "properties": {"a": {}}}, {"a": 1, "b": 2}, "Unevaluated properties are not allowed ('b' unexpected)"),
        ({"unevaluatedProperties": {"type": "string"}}, {"b": "x"}, None),
        ({"unevaluatedProperties": False}, {"a": 1, "b": 2}, "Unevaluated properties are not allowed ('a', 'b' unexpected)"),
        ({"unevaluatedProperties": False, "allOf": [{"unevaluatedProperties": True}]}, {"b": 2}, None),
        ({"unevaluatedProperties": False, "anyOf": [{"required": ["a"], "properties": {"b": {}}}, True]}, {"b": 2}, "Unevaluated properties are not allowed ('b' unexpected)"),
        ({"unevaluatedProperties": False, "anyOf": [{"required": ["b"], "properties": {"b": {}}}]}, {"b": 2}, None),
        ({"additionalProperties": False, "patternProperties": {"^a": {}}}, {"ab": 1, "b": 2, "c": 3}, "Additional properties are not allowed ('b', 'c' unexpected)"),
        ({"additionalProperties": {"type": "string"}}, {"b": 2}, "2 is not of type 'string'"),
        ({"additionalProperties": False}, ["b"], None),
    ],
)  # fmt: skip
def test_messages_of_our_keywords(schema, value, message):
    pytest.importorskip("re2")

    assert errors(schema, value) == ([] if message is None else [message])


def test_an_identifier_changes_what_references_below_it_name():
    schema = {
        "$id": "https://host/a",
        "$defs": {"text": {"type": "string"}, "room": {"$id": "room", "$defs": {"wall": {}}}},
        "properties": {
            "x": {"$ref": "#/$defs/text"},
            "y": {"$id": "y", "$ref": "#/$defs/text"},
            "z": {"$ref": "room#/$defs/wall"},
        },
    }

    assert rules(schema) == [(("properties", "y", "$ref"), "bad_reference")]
    assert rules({"$id": "http://[", "items": {"$id": "a"}}) == [(("items", "$id"), "bad_json_schema")]


def test_a_refused_expression_has_its_place():
    pytest.importorskip("re2")
    schema = {"items": {"patternProperties": {"^a": {}, "(?=a)": {}}, "pattern": "(?!a)"}}

    assert [(path, key, rule) for path, key, rule, _ in jsonschemas.faults(schema)] == [
        (("items", "pattern"), False, "bad_schema_expression"),
        (("items", "patternProperties", "(?=a)"), True, "bad_schema_expression"),
    ]
