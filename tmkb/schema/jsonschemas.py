"""Check JSON Schemas in files: against the meta-schema, and for errors that the meta-schema cannot express.

These are regular expressions that RE2 refuses; references that do not resolve or need the network; references that
lead back to the same schema for the same value; schemas that apply to one value too often or through too long a chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import jsonschema_specifications
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tmkb.errors import Problem
from tmkb.schema import keywords, metaschema, template
from tmkb.schema.reader import Document, Path

Fault = tuple[Path, bool, str, dict[str, str]]  # path; whether it is the key, not its value; rule; fields

CHAIN = 64  # nested subschemas that apply to the same value; `jsonschema` needs five stack frames for each
VISITS = 10_000  # subschemas that apply to a value and its parts, counted once per reference
_LEAF = 1, 1  # the chain and the visits of a schema without subschemas
_EXPRESSION, _BY_EXPRESSION = "pattern", "patternProperties"
_REFERENCES = ("$ref", "$dynamicRef")
# Keywords with subschemas (JSON Schema 2020-12, Core, section 10). Those "in place" apply to the same value.
_IN_PLACE = ("not", "if", "then", "else")
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_MAPS_IN_PLACE = ("dependentSchemas",)
_WITHIN = ("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties")
_MAPS_WITHIN = ("properties", _BY_EXPRESSION, "$defs", "definitions")
_TWICE = ("unevaluatedItems", "unevaluatedProperties")  # evaluate the keywords beside them again
_DEFINITIONS = ("$defs", "definitions")  # do not apply where they are defined
_LISTS_WITHIN = ("prefixItems",)
_NOT_VALIDATED = (  # keywords that `jsonschema` does not validate by themselves
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
    *("contentEncoding", "contentMediaType", "contentSchema", "minContains", "maxContains", "then", "else"),
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions", "enumNames"),
)


def check(doc: Document, path: Path, schema: object) -> Iterator[Problem]:
    """Yield the problems of the JSON Schema at ``path`` in ``doc``."""
    for inside, key, rule, fields in _all_faults(json.dumps(schema)):
        if rule == "not_one_of":
            place = template.cut(".".join(map(str, (*path, *inside))))
            yield doc.problem(rule, (*path, *inside), place=place, **fields)
        else:
            yield (doc.key_problem if key else doc.problem)(rule, (*path, *inside), **fields)


@cache
def _all_faults(text: str) -> list[Fault]:
    """Return the faults of the JSON Schema in ``text``. Cached, because revisions share most of their schemas."""
    schema = json.loads(text)
    validator: Any = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    return [_violation(error) for error in validator.iter_errors(schema)] or [*faults(schema)]


def _violation(error: Any) -> Fault:
    """Return the fault for a violation of the meta-schema."""
    enums = [each for each in (error, *(error.context or ())) if each.validator == "enum" and not each.relative_path]
    if enums and isinstance(error.instance, str):
        choices = [str(value) for value in enums[0].validator_value]
        fields = {"value": error.instance, **metaschema.near(error.instance, choices)}
        return tuple(error.absolute_path), False, "not_one_of", fields
    path = tuple(error.absolute_path)
    if path[-1:] == ("required",) and isinstance(error.instance, bool):
        return path, True, "required_in_property", {"name": str(path[-2]) if len(path) > 1 else "NAME"}
    return path, False, "bad_json_schema", {"reason": error.message}


def unknown_keywords(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the path of each keyword in ``schema`` that resembles a known one, with the known one.

    Validators ignore unknown keywords, so a misspelled one has no effect.
    """
    if not isinstance(schema, dict):
        return
    known = [*jsonschema.Draft202012Validator.VALIDATORS, *_NOT_VALIDATED]
    for key in schema:
        if key not in known and (nearest := metaschema.alike(key, known)):
            yield (*path, key), nearest
    for inner, where, _ in _inside(schema):
        yield from unknown_keywords(inner, (*path, *where))


def faults(schema: Any) -> Iterator[Fault]:
    """Yield the faults of ``schema``, which is valid against the meta-schema."""
    walk = _Walk()
    resolver = jsonschema_specifications.REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    yield from walk.schema(schema, (), resolver)
    loops = [*walk.loops()]
    yield from loops or walk.costs()


class _Walk:
    """Visits each subschema and records which others apply to the same value."""

    def __init__(self) -> None:
        self.schemas: dict[int, Any] = {}  # by `id`; referenced here, so that no id is reused
        self.same_value: dict[int, list[tuple[Any, Path, str]]] = {}
        self.places: dict[int, Path] = {}
        self.within: dict[int, list[Any]] = {}  # subschemas that apply to a part of the value

    def schema(self, schema: Any, path: Path, resolver: Any) -> Iterator[Fault]:
        if not isinstance(schema, dict) or id(schema) in self.schemas:
            return
        self.schemas[id(schema)] = schema
        self.places[id(schema)] = path
        same = self.same_value.setdefault(id(schema), [])
        if path and "$id" in schema:
            try:
                resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
            except ValueError as error:  # it or an `$id` above is no URI
                yield (*path, "$id"), False, "bad_json_schema", {"reason": str(error)}
                return
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
            target = resolver.lookup(reference).contents
        except (Unresolvable, ValueError):
            target = None
        if isinstance(target, dict | bool):
            same.append((target, path, reference))
        else:
            yield path, False, "bad_reference", {"text": reference}

    def loops(self) -> Iterator[Fault]:
        """Yield references that lead back to the same schema without descending into the value."""
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
        """Yield schemas with too many visits or too long a chain for one value. There are no `loops`.

        A reference back to a schema that is being counted applies to a part of the value, and is not counted again.
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
                    chain = 1 + max((counts.get(id(inner), _LEAF)[0] for inner in same), default=0)
                    often = 2 if any(keyword in schema for keyword in _TWICE) else 1
                    visits = 1 + often * sum(counts.get(id(inner), _LEAF)[1] for inner in same)
                    visits += max((counts.get(id(inner), _LEAF)[1] for inner in within), default=0)
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
    """Yield the subschemas of ``schema``, their paths, and whether they apply to the same value."""
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
    values = [((*path, _EXPRESSION), False, schema[_EXPRESSION])] if _EXPRESSION in schema else []
    keys = [((*path, _BY_EXPRESSION, each), True, each) for each in schema.get(_BY_EXPRESSION, {})]
    for place, key, expression in [*values, *keys]:
        try:
            keywords.compiled(expression)
        except ModuleNotFoundError:
            from tmkb.schema import installation

            yield place, key, "extra_missing", installation.lacks(keywords.EXTRA, keywords.MODULE)
        except ValueError as error:
            yield place, key, "bad_schema_expression", {"text": expression, "reason": str(error)}
