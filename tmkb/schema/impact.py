"""Look up the client impact of a change in the meta-schemas, in the keyword ``noticed``.

``noticed: LEVEL`` applies to every change of a value and of all values in it. A map gives a level for each kind of
change: `added`, `removed`, `changed`; for numbers `raised`, `lowered`; for strings `reworded`; for lists of scalars
`moved`, while entries are `added` or `removed`; `to` gives the level by new value. ``schema: given`` (or `got`, or
`both`) marks a JSON Schema of what clients send, or receive. A value without a rule inherits the rule around it. The
default is breaking, so no change is understated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

from tmkb.schema import paths, reader
from tmkb.schema.values import JsonValue

# Most severe first: a working client may fail; something is new; only wording differs; no client can observe it.
IMPACTS = ("breaking", "additive", "cosmetic", "unseen")
BREAKING, ADDITIVE, COSMETIC, UNSEEN = IMPACTS

_BRANCHES = ("allOf", "anyOf", "oneOf")
_Schema = tuple[str, dict[str, Any]]  # the file for relative `$ref`, and the schema


class Impact:
    """The impact rules of one place in a file."""

    def __init__(self, schemas: list[_Schema], inherited: Any = BREAKING) -> None:
        self._schemas = [each for schema in schemas for each in _expanded(schema)]
        self._rule: Any = next((schema["noticed"] for _, schema in self._schemas if "noticed" in schema), inherited)
        self._absent = next((schema["default"] for _, schema in self._schemas if "default" in schema), None)

    def inside(self, step: str | int) -> Impact:
        """Return the rules of the value under a key, or of a list's entry."""
        return Impact([inner for schema in self._schemas for inner in _inside(schema, step)], self._rule)

    def schema_side(self) -> str | None:
        """Return whether the value is a JSON Schema of input, output or both; None if it is no JSON Schema."""
        side: str | None = self._rule.get("schema") if isinstance(self._rule, dict) else None
        return side

    def impact(self, sign: str, before: JsonValue, after: JsonValue) -> str:
        """Return the impact of a change from ``before`` to ``after``; ``sign``: ``+``, ``-`` or ``~``."""
        if self._absent is not None and sign != "~":
            sign, before, after = "~", *(self._absent if value is None else value for value in (before, after))
            if before == after:
                return COSMETIC  # the default is now explicit
        whole = after if sign == "+" else before if sign == "-" else None
        flags = (self.inside(key)._flag(sign, value) for key, value in whole.items()) if isinstance(whole, dict) else ()
        return min([self._own(sign, before, after), *filter(None, flags)], key=IMPACTS.index)

    def _own(self, sign: str, before: JsonValue, after: JsonValue) -> str:
        """Return the impact without the values inside."""
        if isinstance(self._rule, str):
            return self._rule
        change = _SIGNS[sign] if sign != "~" else _change(before, after)
        level: str = self._to(after) or self._rule.get(change) or self._rule.get("changed", BREAKING)
        return level

    def _flag(self, sign: str, value: JsonValue) -> str | None:
        """Return the impact that a value inside adds: for example, a new argument is breaking if it is required."""
        return None if value == self._absent else self._to(value if sign == "+" else self._absent)

    def _to(self, value: JsonValue) -> str | None:
        to: dict[str, str] = self._rule.get("to", {}) if isinstance(self._rule, dict) else {}
        return to.get(json.dumps(value).strip('"'))


@cache
def of(kind: str) -> Impact:
    """Return the rules for whole files of ``kind``."""
    return Impact([_read(os.path.join(paths.SCHEMAS, "meta", f"{kind}.yaml"))])


_SIGNS = {"+": "added", "-": "removed"}


def _change(before: JsonValue, after: JsonValue) -> str:
    if isinstance(before, str) and isinstance(after, str):
        return "reworded"
    if isinstance(before, list) and isinstance(after, list):
        return "moved" if sorted(map(json.dumps, before)) == sorted(map(json.dumps, after)) else "changed"
    if isinstance(before, int | float) and isinstance(after, int | float):
        return "raised" if after > before else "lowered"
    return "changed"


@cache
def _document(file: str) -> dict[str, Any]:
    return reader.read(file).mapping()


def _read(file: str, pointer: str = "") -> _Schema:
    schema: Any = _document(file)
    for step in pointer.split("/")[1:]:
        schema = schema[step]
    return file, schema


def _expanded(schema: _Schema) -> Iterator[_Schema]:
    """Yield a schema, the schemas it refers to, and its branches; earlier ones take precedence."""
    file, value = schema
    yield schema
    if "$ref" in value:
        name, _, pointer = value["$ref"].partition("#")
        yield from _expanded(_read(os.path.join(os.path.dirname(file), name) if name else file, pointer))
    for key in _BRANCHES:
        for branch in value.get(key, ()):
            yield from _expanded((file, branch))


def _inside(schema: _Schema, step: str | int) -> Iterator[_Schema]:
    file, value = schema
    others = value.get("items" if isinstance(step, int) else "additionalProperties")
    inner = value.get("properties", {}).get(step, others)
    if isinstance(inner, dict):
        yield file, inner
    if isinstance(inner, dict) and "described" in value:
        yield _read(os.path.join(os.path.dirname(file), value["described"], f"{step}.yaml"))
