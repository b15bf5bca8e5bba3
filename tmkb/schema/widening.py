"""Compare two JSON Schemas: does the new one accept more values, or fewer?

Every difference has a direction: ``wider`` (every valid value stays valid), ``narrower`` (no further value becomes
valid), ``either`` (unknown), ``words`` (validation does not change), and for names in ``properties`` ``new`` and
``gone``. A schema is a conjunction of keywords, so each is compared separately. Keywords that depend on each other get
``either``. Clients are assumed not to send names that the old schema did not describe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from tmkb.schema.reader import Path, entries
from tmkb.schema.values import JsonValue

Direction = Literal["wider", "narrower", "either", "words", "new", "gone"]


class Difference(NamedTuple):
    """One difference. `sign`: ``+`` added, ``-`` removed, ``~`` changed."""

    path: Path
    sign: str
    before: JsonValue
    after: JsonValue
    direction: Direction


def differences(before: JsonValue, after: JsonValue) -> Iterator[Difference]:
    """Yield every difference from the schema ``before`` to the schema ``after``."""
    references = _uses(before, _REFERENCES) or _uses(after, _REFERENCES)
    combined = _uses(before, _COMBINING)
    for each in _compare(before, after, ()):
        wording = each.direction == "words" and each.path[-1] in _WORDS
        unknown = (references and not wording) or (combined and each.direction == "new")
        yield each._replace(direction="either") if unknown else each


def same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same JSON: 1 is not true, and the order of keys does not matter."""
    return _text(one) == _text(other)


# Keywords whose meaning depends on other parts of the schema.
_REFERENCES = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "unevaluatedItems", "unevaluatedProperties")
# Keywords through which a schema can describe a name outside the `properties` beside them.
_COMBINING = ("allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then")
# In a schema with these keywords alone, only `properties` describes names.
_PLAIN = {
    "$schema",
    "additionalProperties",
    "default",
    "maxProperties",
    "minProperties",
    "properties",
    "required",
    "type",
}
_WORDS = ("$comment", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")


def _compare(before: Any, after: Any, path: Path) -> Iterator[Difference]:
    before, after = ({} if schema is True else schema for schema in (before, after))
    if same(before, after):
        return
    if not (isinstance(before, dict) and isinstance(after, dict)):
        yield Difference(path, "~", before, after, "wider" if before is False else "narrower")
        return
    for key in [*before, *(key for key in after if key not in before)]:
        if key not in before or key not in after or not same(before[key], after[key]):
            yield from _KEYWORDS.get(key, _unknown)(before, after, key, path)


def _whole(before: Any, after: Any, key: str, path: Path, directions: tuple[Direction, ...]) -> Iterator[Difference]:
    """Yield the keyword as one difference; ``directions``: if it was added, removed or changed."""
    sign = "+" if key not in before else "-" if key not in after else "~"
    direction = directions["+-~".index(sign)]
    yield Difference((*path, key), sign, before.get(key), after.get(key), direction)


_unknown = partial(_whole, directions=("either", "either", "either"))
_word = partial(_whole, directions=("words", "words", "words"))
_default = partial(_whole, directions=("words", "either", "either"))  # an argument that was optional stays so
_restriction = partial(_whole, directions=("narrower", "wider", "either"))


def _bound(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    raised = key in before and key in after and after[key] > before[key]
    is_minimum = "min" in key.lower()
    return _whole(before, after, key, path, ("narrower", "wider", "narrower" if raised == is_minimum else "wider"))


def _type(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    old, new = (_types(schema.get(key, [])) for schema in (before, after))
    changed: Direction = "words" if old == new else "wider" if old < new else "narrower" if new < old else "either"
    return _whole(before, after, key, path, ("narrower", "wider", changed))


def _types(value: Any) -> set[str]:
    types = {value} if isinstance(value, str) else set(value)
    return types | {"integer"} if "number" in types else types


def _required(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    return _entries((*path, key), before.get(key, []), after.get(key, []), "narrower", "wider")


def _enum(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    if key in before and key in after:
        return _entries((*path, key), before[key], after[key], "wider", "narrower")
    return _restriction(before, after, key, path)


def _entries(path: Path, before: Any, after: Any, added: Direction, removed: Direction) -> Iterator[Difference]:
    old, new = ({_text(entry) for entry in entries} for entries in (before, after))
    yield from (Difference(path, "-", entry, None, removed) for entry in before if _text(entry) not in new)
    yield from (Difference(path, "+", None, entry, added) for entry in after if _text(entry) not in old)
    if old == new:
        yield Difference(path, "~", before, after, "words")


def _properties(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    old, new = before.get(key, {}), after.get(key, {})
    if not (old or new):
        yield from _word(before, after, key, path)
    for name, schema in old.items():
        if name in new:
            yield from _compare(schema, new[name], (*path, key, name))
        else:
            yield Difference((*path, key, name), "-", schema, None, "gone")
    for name, schema in new.items():
        if name not in old:
            direction = _new_property(before, name, schema)
            yield Difference((*path, key, name), "+", None, schema, direction)


def _new_property(before: Any, name: str, schema: Any) -> Direction:
    """Return the direction of a new schema for ``name``, which ``before`` did not describe."""
    rest = before.get("additionalProperties", True)
    plain = before.keys() - {*_WORDS} <= _PLAIN and name not in before.get("required", [])
    if rest is False or (plain and rest in (True, {})):
        return "new" if plain else "either"
    return "new" if plain and _widens(rest, schema) else "either"


def _widens(before: Any, after: Any) -> bool:
    return all(each.direction in ("wider", "words", "new") for each in _compare(before, after, ()))


def _inner(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    """Compare a subschema for a part of the value; without it, everything is valid."""
    if key in before and key in after:
        return _compare(before[key], after[key], (*path, key))
    no_effect: Direction = "words" if (before if key in before else after)[key] in (True, {}) else "narrower"
    return _whole(before, after, key, path, (no_effect, "words" if no_effect == "words" else "wider", "either"))


def _branches(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    """Compare a list of subschemas by index; in a list of another length, some may have been added or removed."""
    old, new = before.get(key, []), after.get(key, [])
    texts = {_text(each) for each in old}, {_text(each) for each in new}
    if old and new and texts[0] < texts[1] and key in _ADDED:
        yield from _whole(before, after, key, path, (_ADDED[key],) * 3)
    elif old and new and texts[1] < texts[0] and key in _REMOVED:
        yield from _whole(before, after, key, path, (_REMOVED[key],) * 3)
    elif len(old) != len(new):
        yield from _unknown(before, after, key, path)
    else:
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _compare(one, other, (*path, key, index))


_ADDED: dict[str, Direction] = {"allOf": "narrower", "anyOf": "wider"}  # by another branch
_REMOVED: dict[str, Direction] = {"allOf": "wider", "anyOf": "narrower"}


def _definitions(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    """Compare `$defs`: a new definition changes nothing until something refers to it."""
    old, new = before.get(key, {}), after.get(key, {})
    if not (old or new):
        yield from _word(before, after, key, path)
    for name in [*old, *(name for name in new if name not in old)]:
        if name in old and name in new:
            yield from _compare(old[name], new[name], (*path, key, name))
        else:
            yield from _whole(old, new, name, (*path, key), ("words", "either", "either"))


def _choices(before: Any, after: Any, key: str, path: Path) -> Iterator[Difference]:
    """Compare `oneOf`: any difference but wording can accept more values or fewer."""
    for each in _branches(before, after, key, path):
        yield each if each.direction == "words" else each._replace(direction="either")


def _text(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _uses(value: JsonValue, keywords: Collection[str]) -> bool:
    in_keys = isinstance(value, dict) and any(key in value for key in keywords)
    return in_keys or any(_uses(inner, keywords) for _, inner in entries(value))


_KEYWORDS: dict[str, Callable[[Any, Any, str, Path], Iterator[Difference]]] = {
    **dict.fromkeys(_WORDS, _word),
    **dict.fromkeys(("const", "format", "multipleOf", "pattern", "uniqueItems"), _restriction),
    **dict.fromkeys(("exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"), _bound),
    **dict.fromkeys(("exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"), _bound),
    **dict.fromkeys(("additionalProperties", "items", "propertyNames"), _inner),
    **dict.fromkeys(("allOf", "anyOf"), _branches),
    "$defs": _definitions,
    "default": _default,
    "enum": _enum,
    "oneOf": _choices,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
