"""Compare what two servers offer, by the impact on a client that worked with the old one."""

from __future__ import annotations

from typing import Any, NamedTuple

from tmkb.conformance.surface import UNKNOWN, Partial, Surface
from tmkb.schema import diff
from tmkb.schema.diff import Change
from tmkb.schema.values import JsonObject, JsonValue

_BY_KEY = ("revisions", "calls")  # parts of which only what both sides contain can be compared


class Comparison(NamedTuple):
    """The changes, most severe first, and sentences about what could not be compared."""

    changes: list[Change]
    uncovered: list[str]


def compare(old: Surface, new: Surface) -> Comparison:
    """Return the changes from ``old`` to ``new``. What one of them does not contain is not compared."""
    before: JsonObject = {}
    after: JsonObject = {}
    uncovered: list[str] = []
    sides = old.value, new.value
    for part in dict.fromkeys([*old.value, *new.value]):
        if any(part not in side or side[part] is UNKNOWN for side in sides):
            if part not in _BY_KEY:
                uncovered.append(f"{part}: not in {'OLD' if sides[0].get(part, UNKNOWN) is UNKNOWN else 'NEW'}")
            continue
        one, other = _comparable(sides[0][part], sides[1][part])
        if part in _BY_KEY:
            uncovered += _only_in_one(part, one, other)
            one, other = (
                {key: value for key, value in each.items() if key in one and key in other} for each in (one, other)
            )
        before[part], after[part] = one, other
    return Comparison(diff.of_values("surface", _without_unknown(before), _without_unknown(after)), uncovered)


def _without_unknown(value: Any) -> Any:
    """Return a value in which a text for people replaces what a recording leaves open."""
    if isinstance(value, dict):
        return type(value)({key: _without_unknown(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return [_without_unknown(inner) for inner in value]
    return "(any)" if value is UNKNOWN else value


def _only_in_one(part: str, one: Any, other: Any) -> list[str]:
    counts = {"OLD": len(one.keys() - other.keys()), "NEW": len(other.keys() - one.keys())}
    return [f"{part}: {count} only in {side}" for side, count in counts.items() if count]


def _comparable(one: Any, other: Any) -> tuple[Any, Any]:
    """Return both values without what one of them leaves open; after another outcome, nothing else of a call."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in dict.fromkeys([*one, *other]) if not _is_open(one, key) and not _is_open(other, key)]
        if _differ(one.get("outcome"), other.get("outcome")):
            keys = ["outcome"]
        pairs = {key: _pair(one, other, key) for key in keys}
        return (
            {key: pair[0] for key, pair in pairs.items() if key in one},
            {key: pair[1] for key, pair in pairs.items() if key in other},
        )
    if isinstance(one, list) and isinstance(other, list) and (_has_open(one) or _has_open(other)):
        return None, None
    return one, other


def _pair(one: Any, other: Any, key: str) -> tuple[Any, Any]:
    return _comparable(one[key], other[key]) if key in one and key in other else (one.get(key), other.get(key))


def _is_open(side: Any, key: str) -> bool:
    return side[key] is UNKNOWN if key in side else isinstance(side, Partial)


def _differ(one: JsonValue, other: JsonValue) -> bool:
    outcomes = ("result", "error", "silence")
    return one in outcomes and other in outcomes and one != other


def _has_open(value: list[Any]) -> bool:
    return any(
        each is UNKNOWN
        or isinstance(each, Partial)
        or (isinstance(each, list) and _has_open(each))
        or (isinstance(each, dict) and _has_open([*each.values()]))
        for each in value
    )
