"""What was expected against what came, and the difference in words.

Comparison is equality of JSON values, nothing missing and nothing extra. ``{$any: TYPE}`` matches every value of a JSON
type; ``{$var: revision}`` stands for the revision that the transcript runs under.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tmkb.protocol import messages
from tmkb.protocol.arguments import json_type
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonObject, JsonValue

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def types(expected: JsonValue, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Yield the path of each ``{$any: TYPE}`` in ``expected``, and its type."""
    if isinstance(expected, dict) and list(expected) == ["$any"]:
        yield path, expected["$any"]
        return
    items = (
        expected.items() if isinstance(expected, dict) else enumerate(expected) if isinstance(expected, list) else ()
    )
    for step, inner in items:
        yield from types(inner, (*path, step))


def put(value: JsonValue, revision: str) -> JsonValue:
    """``value`` with the revision in the places that stand for it."""
    if value == {"$var": "revision"}:
        return revision
    if isinstance(value, dict):
        return {key: put(inner, revision) for key, inner in value.items()}
    if isinstance(value, list):
        return [put(inner, revision) for inner in value]
    return value


def arranged(expected: Sequence[JsonValue], actual: Sequence[JsonValue]) -> list[JsonValue]:
    """``actual`` in the order of ``expected``, as far as it matches; the rest at the end."""
    rest, found = [*actual], []
    for each in expected:
        for index, came in enumerate(rest):
            if not any(differences([each], [came])):
                found.append(rest.pop(index))
                break
    return found + rest


def differences(expected: JsonValue, actual: JsonValue, place: str = "") -> Iterator[str]:
    """A sentence for each place where ``actual`` is not what was expected."""
    if isinstance(expected, dict) and list(expected) == ["$any"]:
        if json_type(actual) != expected["$any"]:
            yield f"{place or 'value'}: expected any {expected['$any']}, got {_short(actual)}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _member(expected, actual, key, f"{place}.{key}" if place else key)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{place or 'messages'}: expected {len(expected)}, got {len(actual)}: {_short(actual)}"
        for index, (wanted, got) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(wanted, got, f"{place}[{index}]")
    elif json_type(expected) != json_type(actual) or expected != actual:
        yield f"{place or 'value'}: expected {_short(expected)}, got {_short(actual)}"


def _member(expected: JsonObject, actual: JsonObject, key: str, place: str) -> Iterator[str]:
    if key not in actual:
        yield f"{place}: missing, expected {_short(expected[key])}"
    elif key not in expected:
        yield f"{place}: not expected, got {_short(actual[key])}"
    else:
        yield from differences(expected[key], actual[key], place)


def updated(expected: JsonValue, actual: JsonValue, revision: str) -> JsonValue:
    """``actual`` as it is written down: matchers of ``expected`` that still match stay."""
    if not list(differences(put(expected, revision), actual)):
        return expected
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: updated(expected.get(key), inner, revision) for key, inner in actual.items()}
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip([*expected, *[None] * len(actual)], actual, strict=False)
        return [updated(wanted, got, revision) for wanted, got in pairs]
    return actual


def _short(value: JsonValue) -> str:
    text = messages.compact(value)
    return text if len(text) <= 200 else text[:200] + "…"
