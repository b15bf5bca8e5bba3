"""The objects with a special meaning in a transcript: matchers in ``expect``, and placeholders in ``send``.

Their names begin with ``$``, as some keys of JSON Schema do. So an object is a matcher only if it contains nothing
else, and ``$ref`` is one only with the name of a captured value, unlike a reference in a schema (``#/$defs/…``).
``{$literal: VALUE}`` is VALUE itself, whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tmkb.schema import keywords, metaschema, reader
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonObject, JsonValue

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")  # the values of `$any`
EXPECTED = ("$any", "$re", "$ignore", "$subset", "$unordered", "$json", "$capture", "$ref", "$literal", "$var")
SENT = ("$ref", "$var", "$literal")
Bindings = dict[str, JsonValue]  # the captured values of one conversation

PLACEHOLDER = re.compile(r"REDACTED-[0-9]+")  # stands for one secret

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHAPES: dict[str, type] = {"$subset": dict, "$unordered": list, "$re": str, "$capture": str, "$ref": str}
_IN_SCHEMAS = frozenset(
    [
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id"),
        *("$recursiveAnchor", "$recursiveRef", "$ref", "$schema", "$vocabulary"),
    ]
)
_OURS = frozenset(EXPECTED) - _IN_SCHEMAS


class Redacted(str):
    """A text with placeholders of the recorder in place of secrets. `matches` allows any text in their place."""

    __slots__ = ()

    def matches(self, actual: JsonValue) -> bool:
        """Return whether ``actual`` may be the text that was redacted. A number may be under one placeholder alone."""
        if not isinstance(actual, str):
            is_number = isinstance(actual, int | float) and not isinstance(actual, bool)
            return is_number and PLACEHOLDER.fullmatch(self) is not None
        first, *rest = PLACEHOLDER.split(self)
        position = len(first)
        for part in rest[:-1]:
            position = actual.find(part, position + 1)
            if position < 0:
                return False
            position += len(part)
        return actual.startswith(first) and actual.endswith(rest[-1]) and len(actual) - len(rest[-1]) > position


class Matcher(NamedTuple):
    """One matcher: ``name`` and its ``operand``. ``captures``: the name that the actual value gets; may be empty."""

    name: str
    operand: Any
    captures: str


class Fault(NamedTuple):
    """A mistake in a matcher: its place in the value, the rule in `schemas/problems.yaml`, and the fields of that.

    ``of_key``: whether the key at the place is wrong, not its value.
    """

    path: Path
    rule: str
    fields: dict[str, str]
    of_key: bool = False


def read(value: JsonValue, names: tuple[str, ...] = EXPECTED) -> Matcher | None:
    """Return the matcher that ``value`` is; None for a value that stands for itself. ``names``: those that count."""
    if not isinstance(value, dict) or not 1 <= len(value) <= 2 or not is_reserved(value):
        return None
    captures: Any = value.get("$capture", "") if "$capture" in names else ""
    others = [(name, operand) for name, operand in value.items() if name != "$capture" or "$capture" not in names]
    if not others and isinstance(captures, str):
        return Matcher("$capture", None, captures)
    if len(others) != 1 or not isinstance(captures, str):
        return None
    (name, operand) = others[0]
    if name not in names or not isinstance(operand, _SHAPES.get(name, object)) or (len(value) == 2 and not captures):
        return None
    return Matcher(name, operand, captures)


def may_be_absent(value: JsonValue) -> bool:
    """Return whether a member of an object with this expected value need not be there."""
    matcher = read(value)
    return matcher is not None and matcher.name == "$ignore"


def is_reserved(value: JsonObject) -> bool:
    """Return whether an object is a matcher, or would be taken for a misspelled one."""
    if value.keys() <= _IN_SCHEMAS:
        name = value.get("$ref")
        return len(value) == 1 and isinstance(name, str) and _NAME.fullmatch(name) is not None
    return not value.keys().isdisjoint(_OURS) or all(key.startswith("$") for key in value)


def literal(value: JsonValue) -> JsonValue:
    """Return ``value`` as a transcript has to contain it: objects that look like matchers are in `$literal`."""
    if isinstance(value, dict):
        if is_reserved(value):
            return {"$literal": value}
        return {key: literal(inner) for key, inner in value.items()}
    return [literal(inner) for inner in value] if isinstance(value, list) else value


def redacted(value: JsonValue) -> JsonValue:
    """Return ``value`` with a `Redacted` for each text that has placeholders."""
    if isinstance(value, dict):
        return {key: redacted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner) for inner in value]
    return Redacted(value) if isinstance(value, str) and PLACEHOLDER.search(value) else value


def resolve(value: JsonValue, revision: str) -> JsonValue:
    """Return ``value`` with ``{$var: revision}`` replaced by ``revision``."""
    if value == {"$var": "revision"}:
        return revision
    if isinstance(value, dict):
        return value if _is_literal(value) else {key: resolve(inner, revision) for key, inner in value.items()}
    return [resolve(inner, revision) for inner in value] if isinstance(value, list) else value


def bind(value: JsonValue, bindings: Bindings) -> JsonValue:
    """Return the message that ``value`` in ``send`` stands for, with captured values. Raises KeyError without one."""
    matcher = read(value, SENT)
    if matcher is not None and matcher.name == "$ref":
        return bindings[matcher.operand]
    if matcher is not None and matcher.name == "$literal":
        return matcher.operand  # type: ignore[no-any-return]
    if isinstance(value, dict):
        return {key: bind(inner, bindings) for key, inner in value.items()}
    return [bind(inner, bindings) for inner in value] if isinstance(value, list) else value


def faults(value: JsonValue, path: Path, captured: set[str], sent: bool) -> Iterator[Fault]:
    """Yield the mistakes in the matchers of ``value``, which is in ``send`` if ``sent``, else in ``expect``.

    ``captured``: the names that are bound so far; those that ``value`` captures are added.
    """
    names = SENT if sent else EXPECTED
    if not isinstance(value, dict) or not is_reserved(value) or (sent and not {*value} & {*EXPECTED}):
        for step, inner in reader.entries(value):
            yield from faults(inner, (*path, step), captured, sent)
        return
    unknown = [name for name in value if name not in names]
    for name in unknown:
        yield Fault((*path, name), "unknown_name", _near("matcher", name, names), of_key=True)
    matcher = read(value, names)
    if matcher is not None:
        yield from _operand_faults(matcher, path, captured)
        yield from _inner_faults(matcher, path, captured)
    elif not unknown:
        yield Fault(path, "bad_matcher", {"names": " and ".join(value)})


def _inner_faults(matcher: Matcher, path: Path, captured: set[str]) -> Iterator[Fault]:
    """Yield the mistakes in the values inside a matcher, and add the name that it captures."""
    inside: dict[str | int, JsonValue] = {matcher.name: matcher.operand} if matcher.name == "$json" else {}
    if matcher.name in ("$subset", "$unordered"):
        inside = dict(reader.entries(matcher.operand))
        path = (*path, matcher.name)
    for step, inner in inside.items():
        yield from faults(inner, (*path, step), captured, False)
    if matcher.captures:
        captured.add(matcher.captures)


def _operand_faults(matcher: Matcher, path: Path, captured: set[str]) -> Iterator[Fault]:
    name, operand = matcher.name, matcher.operand
    at = (*path, name)
    if (name == "$capture" or matcher.captures) and not _NAME.fullmatch(matcher.captures):
        yield Fault((*path, "$capture"), "bad_capture", {"text": matcher.captures})
    if name == "$any" and operand not in TYPES:
        yield Fault(at, "unknown_name", _near("JSON type", str(operand), TYPES))
    elif name == "$var" and operand != "revision":
        yield Fault(at, "unknown_name", _near("variable", str(operand), ("revision",)))
    elif name == "$ignore" and operand is not True:
        yield Fault(at, "bad_matcher", {"names": name})
    elif name == "$ref" and operand not in captured:
        yield Fault(at, "not_captured", {"name": operand})
    elif name == "$re":
        try:
            keywords.compiled(operand)
        except ModuleNotFoundError:
            from tmkb.schema import installation

            yield Fault(at, "extra_missing", installation.lacks(keywords.EXTRA, keywords.MODULE))
        except ValueError as error:
            yield Fault(at, "bad_schema_expression", {"text": operand, "reason": str(error)})


def _near(kind: str, name: str, known: tuple[str, ...]) -> dict[str, str]:
    return {"kind": kind, "name": name, **metaschema.near(name, known)}


def _is_literal(value: JsonObject) -> bool:
    return list(value) == ["$literal"]
