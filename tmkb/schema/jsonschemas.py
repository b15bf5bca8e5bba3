"""What the meta-schema of JSON Schema does not say of a JSON Schema, and what would fail with every value.

Regular expressions that RE2 does not take; references that lead nowhere or to the network; references that lead back to
where they stand without entering the value; schemas that judge the same value too often, or by too long a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_specifications
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tmkb.schema import keywords
from tmkb.schema.reader import Path

Fault = tuple[Path, bool, str, dict[str, str]]  # where; whether the key is meant, not its value; rule; fields

CHAIN = 64  # subschemas one in the other that judge the same value; `jsonschema` needs five frames for each
VISITS = 10_000  # subschemas that judge a value and what it contains, each as often as references lead to it
_EXPRESSION, _BY_EXPRESSION = "pattern", "patternProperties"
_REFERENCES = ("$ref", "$dynamicRef")
# Where subschemas stand (JSON Schema 2020-12, Core, section 10). Those in place judge the same value.
_IN_PLACE = ("not", "if", "then", "else")
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_MAPS_IN_PLACE = ("dependentSchemas",)
_WITHIN = ("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties")
_MAPS_WITHIN = ("properties", _BY_EXPRESSION, "$defs", "definitions")
_TWICE = ("unevaluatedItems", "unevaluatedProperties")  # judge once more what stands beside them
_DEFINITIONS = ("$defs", "definitions")  # judge nothing where they stand
_LISTS_WITHIN = ("prefixItems",)


def faults(schema: Any) -> Iterator[Fault]:
    """Yield the faults of ``schema``, which obeys the meta-schema."""
    try:
        resolver = jsonschema_specifications.REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    except ValueError as error:  # an `$id` that is no URI
        yield ("$id",), False, "bad_json_schema", {"reason": str(error)}
        return
    walk = _Walk()
    yield from walk.schema(schema, (), resolver)
    loops = [*walk.loops()]
    yield from loops or walk.costs()


class _Walk:
    """Visits each subschema and notes which others judge the same value."""

    def __init__(self) -> None:
        self.schemas: dict[int, Any] = {}  # by `id`; kept, so that no other can have it
        self.same_value: dict[int, list[tuple[Any, Path, str]]] = {}
        self.places: dict[int, Path] = {}
        self.within: dict[int, list[Any]] = {}  # subschemas that judge a part of the value

    def schema(self, schema: Any, path: Path, resolver: Any) -> Iterator[Fault]:
        if not isinstance(schema, dict) or id(schema) in self.schemas:
            return
        self.schemas[id(schema)] = schema
        self.places[id(schema)] = path
        same = self.same_value.setdefault(id(schema), [])
        if path and "$id" in schema:
            resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
        yield from _expressions(schema, path)
        for inner, where, in_place in _inside(schema):
            if in_place:
                same.append((inner, (*path, *where), str(where[0])))
            elif where[0] not in _DEFINITIONS:
                self.within.setdefault(id(schema), []).append(inner)
            yield from self.schema(inner, (*path, *where), resolver)
        for keyword in _REFERENCES:
            if keyword in schema:
                yield from self.reference(schema[keyword], (*path, keyword), resolver, same)

    def reference(
        self, reference: str, path: Path, resolver: Any, same: list[tuple[Any, Path, str]]
    ) -> Iterator[Fault]:
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError):
            yield path, False, "bad_reference", {"text": reference}
            return
        if not isinstance(found.contents, dict | bool):
            yield path, False, "bad_reference", {"text": reference}
            return
        same.append((found.contents, path, reference))

    def loops(self) -> Iterator[Fault]:
        """References that lead back to where they stand, and never into the value."""
        done: set[int] = set()
        for start in self.schemas.values():
            above: dict[int, None] = {}
            waiting: list[tuple[Any, Path, str, bool]] = [(start, (), "", False)]
            while waiting:
                schema, path, text, left = waiting.pop()
                if left:
                    del above[id(schema)]
                    done.add(id(schema))
                elif id(schema) in above:
                    yield path, False, "reference_loop", {"text": text}
                elif id(schema) not in done and id(schema) in self.same_value:
                    above[id(schema)] = None
                    waiting.append((schema, path, text, True))
                    waiting += [(*each, False) for each in self.same_value[id(schema)]]

    def costs(self) -> Iterator[Fault]:
        """Schemas that judge a value too often or by too long a chain. There are no `loops`.

        What leads back to a schema that is being counted has entered the value, and counts nothing: the value ends.
        """
        counts: dict[int, tuple[int, int]] = {}  # longest chain; visits
        counting: set[int] = set()
        for start in self.schemas.values():
            waiting = [(start, False)]
            while waiting:
                schema, counted = waiting.pop()
                key = id(schema)
                same = [inner for inner, _, _ in self.same_value.get(key, ())]
                within = self.within.get(key, [])
                if counted:
                    counting.discard(key)
                    chain = 1 + max((counts.get(id(inner), (1, 1))[0] for inner in same), default=0)
                    often = 2 if any(keyword in schema for keyword in _TWICE) else 1
                    visits = 1 + often * sum(counts.get(id(inner), (1, 1))[1] for inner in same)
                    visits += max((counts.get(id(inner), (1, 1))[1] for inner in within), default=0)
                    counts[key] = chain, visits
                    if chain > CHAIN or visits > VISITS:
                        rule, limit = ("long_chain", CHAIN) if chain > CHAIN else ("many_visits", VISITS)
                        yield self.places[key], False, rule, {"limit": str(limit)}
                        return
                elif key in self.schemas and key not in counts and key not in counting:
                    counting.add(key)
                    waiting.append((schema, True))
                    waiting += [(inner, False) for inner in (*same, *within)]


def _inside(schema: dict[str, Any]) -> Iterator[tuple[Any, Path, bool]]:
    """The subschemas of ``schema``, where they stand, and whether they judge the same value."""
    for name in (*_IN_PLACE, *_WITHIN):
        if name in schema:
            yield schema[name], (name,), name in _IN_PLACE
    for name in (*_LISTS_IN_PLACE, *_LISTS_WITHIN):
        for index, inner in enumerate(schema.get(name, [])):
            yield inner, (name, index), name in _LISTS_IN_PLACE
    for name in (*_MAPS_IN_PLACE, *_MAPS_WITHIN):
        for key, inner in schema.get(name, {}).items():
            yield inner, (name, key), name in _MAPS_IN_PLACE


def _expressions(schema: dict[str, Any], path: Path) -> Iterator[Fault]:
    if _EXPRESSION in schema:
        yield from _expression((*path, _EXPRESSION), False, schema[_EXPRESSION])
    for expression in schema.get(_BY_EXPRESSION, {}):
        yield from _expression((*path, _BY_EXPRESSION, expression), True, expression)


def _expression(path: Path, key: bool, expression: str) -> Iterator[Fault]:
    try:
        keywords.compiled(expression)
    except ModuleNotFoundError:
        yield path, key, "extra_missing", {"module": keywords.MODULE, "extra": keywords.EXTRA}
    except ValueError as error:
        yield path, key, "bad_schema_expression", {"text": expression, "reason": str(error)}
