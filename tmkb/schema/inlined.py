"""Rewrite a JSON Schema into an equivalent one that `widening` can compare: without local references, if possible.

Generated schemas put models into ``$defs``, and write "a number or null" as ``anyOf``. `widening` compares keyword by
keyword, so a reference or a combination hides what has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tmkb.schema.reader import entries
from tmkb.schema.values import JsonObject, JsonValue

_MOST = 20_000  # values of a rewritten schema; references can double it at every level
_DEEPEST = 60  # levels; a recursive schema has no end
_DEFINITIONS = ("$defs", "definitions")
_WORDS = ("$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")
_OTHER = ("$ref", "$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef")
_OF_NUMBERS = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf")
_OF_TYPE = {  # type → the keywords that restrict only values of this type
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
    "string": ("contentEncoding", "contentMediaType", "maxLength", "minLength", "pattern"),
    "array": ("contains", "items", "maxContains", "maxItems", "minContains", "minItems", "prefixItems", "uniqueItems"),
    "object": (
        *("additionalProperties", "dependentRequired", "dependentSchemas", "maxProperties", "minProperties"),
        *("patternProperties", "properties", "propertyNames", "required"),
    ),
}


class _TooLarge(Exception):
    """The rewritten schema would have more than `_MOST` values, or more than `_DEEPEST` levels."""


def inlined(schema: JsonValue) -> JsonValue:
    """Return ``schema`` with local references replaced by what they refer to, and simple ``anyOf`` by lists of types.

    A schema is returned unchanged if it is recursive, if it has references of another kind, or if it would become
    much larger.
    """
    try:
        rewritten = _rewritten(schema, schema, 0, iter(range(_MOST)))
    except (_TooLarge, RecursionError):
        return schema
    if not isinstance(rewritten, dict) or _refers(rewritten):
        return schema
    return {key: value for key, value in rewritten.items() if key not in _DEFINITIONS}


def _rewritten(schema: JsonValue, root: JsonValue, depth: int, budget: Iterator[int]) -> JsonValue:
    if next(budget, None) is None or depth > _DEEPEST:
        raise _TooLarge
    if isinstance(schema, list):
        return [_rewritten(inner, root, depth + 1, budget) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    target = _target(schema, root)
    if target is not None:
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        if besides.keys() <= {*_WORDS} and isinstance(target, dict):
            return _rewritten({**target, **besides}, root, depth + 1, budget)
    skipped = _DEFINITIONS if schema is root else ()
    return _with_types(
        {key: _rewritten(value, root, depth + 1, budget) for key, value in schema.items() if key not in skipped}
    )


def _target(schema: JsonObject, root: JsonValue) -> JsonValue:
    """Return what the reference of ``schema`` leads to within ``root``; None if it has no such reference."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    value = root
    for step in reference[2:].split("/"):
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value


def _with_types(schema: JsonObject) -> JsonObject:
    """Replace ``anyOf`` of branches with different types by a list of types, beside the keywords of all branches.

    This is equivalent if each other keyword in a branch restricts only values of the branch's type.
    """
    branches: Any = schema.get("anyOf")
    besides = schema.keys() - {"anyOf", *_WORDS}
    if not isinstance(branches, list) or besides or not all(map(_has_one_type, branches)):
        return schema
    merged: JsonObject = {}
    types = [branch["type"] for branch in branches]
    keywords = [key for branch in branches for key in branch if key != "type"]
    overlapping = len(set(types)) < len(types) or {"integer", "number"} <= set(types)
    if overlapping or len(set(keywords)) < len(keywords) or {*keywords} & {*schema}:
        return schema
    for branch in branches:
        merged |= branch
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **merged, "type": types}


def _has_one_type(branch: Any) -> bool:
    if not isinstance(branch, dict) or not isinstance(branch.get("type"), str):
        return False
    return branch.keys() <= {"type", *_WORDS, *_OF_TYPE.get(branch["type"], ())}


def _refers(value: JsonValue) -> bool:
    in_keys = isinstance(value, dict) and any(key in value for key in _OTHER)
    return in_keys or any(_refers(inner) for _, inner in entries(value))
