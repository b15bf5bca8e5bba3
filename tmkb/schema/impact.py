"""How clients notice a change: what the meta-schemas say of each key, in `noticed`.

``noticed: IMPACT`` is true of every change of a value and of all in it. Else it is a map of what has happened to the
impact of that: `added`, `removed`, `changed`; of numbers `raised`, `lowered`; of texts `reworded`; of lists of plain
values `moved`, where entries come and go as `added` and `removed`; `to`, by the new value. ``schema: given`` (or `got`,
or `both`) says that the value is a JSON Schema of what clients give, or get. What stands in a value without a word of
its own is like the value around it. Where nothing is said a change is breaking: nothing is ever understated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

from tmkb.schema import paths, reader
from tmkb.schema.values import JsonValue

# What worked may fail or mean something else; there is more; it reads differently; no client is told. Gravest first.
IMPACTS = ("breaking", "additive", "cosmetic", "unseen")
BREAKING, ADDITIVE, COSMETIC, UNSEEN = IMPACTS

_BRANCHES = ("allOf", "anyOf", "oneOf")
_Schema = tuple[str, dict[str, Any]]  # the file that its `$ref` are relative to, and the schema


class Notice:
    """What the meta-schemas say of one place of a file."""

    def __init__(self, schemas: list[_Schema], around: Any = BREAKING) -> None:
        self._schemas = [each for schema in schemas for each in _expanded(schema)]
        self.says: Any = next((schema["noticed"] for _, schema in self._schemas if "noticed" in schema), around)
        self._absent = next((schema["default"] for _, schema in self._schemas if "default" in schema), None)

    def inside(self, step: str | int) -> Notice:
        """The same of what stands under a key, or in a list."""
        return Notice([inner for schema in self._schemas for inner in _inside(schema, step)], self.says)

    def of_schema(self) -> str | None:
        """On which side of a JSON Schema clients are; None where the value is none."""
        side: str | None = self.says.get("schema") if isinstance(self.says, dict) else None
        return side

    def impact(self, sign: str, before: JsonValue, after: JsonValue) -> str:
        """How grave it is that ``before`` is ``after``; ``sign`` says whether it was added, removed or changed."""
        if self._absent is not None and sign != "~":
            sign, before, after = "~", *(self._absent if value is None else value for value in (before, after))
            if before == after:
                return COSMETIC  # what is said now was meant before
        whole = after if sign == "+" else before if sign == "-" else None
        flags = (self.inside(key)._flag(sign, value) for key, value in whole.items()) if isinstance(whole, dict) else ()
        return min([self._own(sign, before, after), *filter(None, flags)], key=IMPACTS.index)

    def _own(self, sign: str, before: JsonValue, after: JsonValue) -> str:
        """The impact without regard to what is inside."""
        if isinstance(self.says, str):
            return self.says
        happened = _HAPPENED[sign] if sign != "~" else _change(before, after)
        found: str = self._to(after) or self.says.get(happened) or self.says.get("changed", BREAKING)
        return found

    def _flag(self, sign: str, value: JsonValue) -> str | None:
        """What a value says of that with which it comes or goes: an argument is harmless, unless it is required."""
        return None if value == self._absent else self._to(value if sign == "+" else self._absent)

    def _to(self, value: JsonValue) -> str | None:
        to: dict[str, str] = self.says.get("to", {}) if isinstance(self.says, dict) else {}
        return to.get(json.dumps(value).strip('"'))


@cache
def of(kind: str) -> Notice:
    """What is said of files of ``kind``, as a whole."""
    return Notice([_read(os.path.join(paths.SCHEMAS, "meta", f"{kind}.yaml"))])


_HAPPENED = {"+": "added", "-": "removed"}


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
    """A schema, and what it refers to or consists of: all have a say, the first the most."""
    file, says = schema
    yield schema
    if "$ref" in says:
        name, _, pointer = says["$ref"].partition("#")
        yield from _expanded(_read(os.path.join(os.path.dirname(file), name) if name else file, pointer))
    for key in _BRANCHES:
        for branch in says.get(key, ()):
            yield from _expanded((file, branch))


def _inside(schema: _Schema, step: str | int) -> Iterator[_Schema]:
    file, says = schema
    named = says.get("properties", {}).get(step)
    others = says.get("items" if isinstance(step, int) else "additionalProperties")
    found = named if named is not None else others
    if isinstance(found, dict):
        yield file, found
    if isinstance(found, dict) and "described" in says:
        yield _read(os.path.join(os.path.dirname(file), says["described"], f"{step}.yaml"))
