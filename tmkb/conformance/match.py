"""Compare the expected messages with the actual ones, and describe the differences.

Two JSON values match if they are equal. ``{$any: TYPE}`` matches every value of a JSON type. ``{$var: revision}`` is a
placeholder for the revision of the replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tmkb.protocol import messages
from tmkb.protocol.arguments import json_type
from tmkb.schema import reader
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonObject, JsonValue

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def placeholder_types(expected: JsonValue, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Yield the path of each ``{$any: TYPE}`` in ``expected``, and its type."""
    if isinstance(expected, dict) and list(expected) == ["$any"]:
        yield path, expected["$any"]
        return
    for step, inner in reader.entries(expected):
        yield from placeholder_types(inner, (*path, step))


def resolve(value: JsonValue, revision: str) -> JsonValue:
    """Return ``value`` with ``{$var: revision}`` replaced by ``revision``."""
    if value == {"$var": "revision"}:
        return revision
    if isinstance(value, dict):
        return {key: resolve(inner, revision) for key, inner in value.items()}
    if isinstance(value, list):
        return [resolve(inner, revision) for inner in value]
    return value


def sort_like(expected: Sequence[JsonValue], actual: Sequence[JsonValue]) -> list[JsonValue]:
    """Return ``actual`` in the order of ``expected``; messages that match none come last."""
    rest, matches = [*actual], []
    for message in expected:
        for index, candidate in enumerate(rest):
            if not any(differences([message], [candidate])):
                matches.append(rest.pop(index))
                break
    return matches + rest


def differences(expected: JsonValue, actual: JsonValue, place: str = "") -> Iterator[str]:
    """Yield a sentence for each difference between ``expected`` and ``actual``."""
    if isinstance(expected, dict) and list(expected) == ["$any"]:
        if json_type(actual) != expected["$any"]:
            yield f"{place or 'value'}: expected any {expected['$any']}, got {_short(actual)}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _member(expected, actual, key, f"{place}.{key}" if place else key)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{place or 'messages'}: expected {len(expected)}, got {len(actual)}: {_short(actual)}"
        for index, pair in enumerate(zip(expected, actual, strict=False)):
            yield from differences(*pair, f"{place}[{index}]")
    elif json_type(expected) != json_type(actual) or expected != actual:
        yield f"{place or 'value'}: expected {_short(expected)}, got {_short(actual)}"


def _member(expected: JsonObject, actual: JsonObject, key: str, place: str) -> Iterator[str]:
    if key not in actual:
        yield f"{place}: missing, expected {_short(expected[key])}"
    elif key not in expected:
        yield f"{place}: not expected, got {_short(actual[key])}"
    else:
        yield from differences(expected[key], actual[key], place)


def update(expected: JsonValue, actual: JsonValue, revision: str) -> JsonValue:
    """Return ``actual`` for a transcript, with the placeholders of ``expected`` that still match."""
    if not list(differences(resolve(expected, revision), actual)):
        return expected
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: update(expected.get(key), inner, revision) for key, inner in actual.items()}
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip([*expected, *[None] * len(actual)], actual, strict=False)
        return [update(old, new, revision) for old, new in pairs]
    return actual


def _short(value: JsonValue) -> str:
    text = messages.compact(value)
    return text if len(text) <= 200 else text[:200] + "…"
