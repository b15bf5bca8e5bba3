"""Replay a new recording against the same server, and find the values that differ from run to run.

A value that a later turn sends back is captured from the actual answer; others only keep their type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tmkb.conformance import matchers, replay, transcript
from tmkb.conformance.recording import write
from tmkb.conformance.targets import Target
from tmkb.protocol.arguments import json_type
from tmkb.schema import emission
from tmkb.schema.reader import Path, at, entries
from tmkb.schema.values import JsonValue

_MIN_REPEATED = 4  # characters of a value that a later turn repeats
_NO_NAME = re.compile(r"[^A-Za-z0-9_]+")


class Outcome(NamedTuple):
    """``replaced``: what was written into the file, as sentences; ``differences``: what still differs."""

    replaced: list[str]
    differences: list[str]


def check(path: str, connect: Callable[[], Target]) -> Outcome:
    """Replay the transcript at ``path`` on a new target until all that can differ is a matcher.

    Raises:
        DocumentError: the file is no transcript.
        OSError: the server cannot be started or reached.
    """
    replaced: list[str] = []
    while True:  # ends, because each round replaces values by matchers: a captured one can lead to further ones
        recording = transcript.read(path)
        results = list(replay.replay(recording, recording.revisions[0], connect()))
        differing = {each.number: each.actual for each in results if each.differences}
        changes = _changes(recording.value["exchanges"], differing)
        if not changes:
            return Outcome(replaced, [f"turn {each.number}: {line}" for each in results for line in each.differences])
        for place, value in changes.items():
            at(recording.value["exchanges"], place[:-1])[place[-1]] = value
        write(path, recording.value)
        replaced += [f"turn {int(place[0]) + 1}: {_sentence(place, value)}" for place, value in changes.items()]


def _changes(turns: list[Any], differing: dict[int, list[JsonValue]]) -> dict[Path, JsonValue]:
    """Return the matchers to write: path below ``exchanges`` → value."""
    names = {each["$capture"] for turn in turns for each in _objects(turn["expect"]) if "$capture" in each}
    captures: dict[Path, JsonValue] = {}
    types: dict[Path, JsonValue] = {}
    for number, actual in sorted(differing.items()):
        turn = number - 1
        if turn >= len(turns) or len(turns[turn]["expect"]) != len(actual):
            continue
        for place, before, after in _differing(turns[turn]["expect"], actual, (turn, "expect")):
            later = range(turn + 1, len(turns))
            uses = [use for each in later for use in _places(turns[each].get("send"), before, (each, "send"))]
            if uses and place not in captures:
                name = _name(place, names)
                captures[place] = {"$capture": name}
                captures.update((use, {"$ref": name}) for use in uses)
            else:
                types[place] = _matcher(before, after)
    return captures or types


def _matcher(before: Any, after: Any) -> JsonValue:
    """Return what matches both values: the JSON in both texts, whose parts the next round compares, or a type."""
    if json_type(before) != json_type(after):
        return {"$ignore": True}
    parsed, other = _json(before), _json(after)
    if parsed is not None and _has_shape(parsed, other):
        return {"$json": matchers.literal(parsed)}
    return {"$any": json_type(after)}


def _has_shape(expected: Any, actual: Any) -> bool:
    """Return whether two values have the same keys and lengths; a matcher has every shape."""
    if isinstance(expected, dict) and matchers.is_reserved(expected):
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_has_shape(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_has_shape(*pair) for pair in pairs)
    return not isinstance(expected, dict | list) and not isinstance(actual, dict | list)


def _json(text: Any) -> dict[str, JsonValue] | list[JsonValue] | None:
    """Return the map or list in ``text``; None if it has none, or if a transcript cannot contain it."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and transcript.is_writable([value]) else None


def _differing(before: Any, after: Any, place: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the place, the recorded and the actual value of each scalar that differs, if the rest has one shape."""
    if isinstance(before, dict) and list(before) == ["$json"]:
        parsed = _json(after)
        has_shape = _has_shape(before["$json"], parsed)
        yield from _differing(before["$json"], parsed, (*place, "$json")) if has_shape else [(place, "", after)]
    elif isinstance(before, dict) and matchers.is_reserved(before):
        return
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() & after.keys()):
            yield from _differing(before[key], after[key], (*place, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from _differing(*pair, (*place, number))
    elif before != after or json_type(before) != json_type(after):
        yield place, before, after


def _places(value: Any, text: Any, place: Path) -> Iterator[Path]:
    """Yield the places of the string ``text`` in ``value``."""
    if isinstance(text, str) and value == text and len(text) >= _MIN_REPEATED:
        yield place
    if not (isinstance(value, dict) and matchers.is_reserved(value)):
        for step, inner in entries(value):
            yield from _places(inner, text, (*place, step))


def _objects(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
    for _, inner in entries(value):
        yield from _objects(inner)


def _name(place: Path, names: set[str]) -> str:
    """Return a new name for the value at ``place``, after its key."""
    key = next((step for step in reversed(place) if isinstance(step, str)), "value")
    stem = _NO_NAME.sub("_", key).strip("_") or "value"
    stem = stem if stem[0].isalpha() else f"value_{stem}"
    name = next(each for each in [stem, *(f"{stem}_{n}" for n in range(2, 10_000))] if each not in names)
    names.add(name)
    return name


def _sentence(place: Path, value: JsonValue) -> str:
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place[1:]).removeprefix(".")
    reason = "repeats a captured value" if "$ref" in str(value) else "differs from run to run"
    return f"{shown} {reason}: {emission.inline(value)}"
