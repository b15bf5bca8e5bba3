"""Compare the expected messages with the actual ones, and describe the differences.

Two JSON values match if they are equal; matchers (`tmkb.conformance.matchers`) match more values.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from tmkb.conformance import matchers
from tmkb.conformance.matchers import Bindings, Matcher, Redacted
from tmkb.protocol import messages
from tmkb.protocol.arguments import json_type
from tmkb.schema import keywords
from tmkb.schema.template import cut
from tmkb.schema.values import JsonObject, JsonValue

_SHOWN = 200  # characters of a value in a sentence
_GAP: Any = object()  # where no message was found
_PLAIN = re.compile(r"[\w$./@-]+")  # a key that needs no quotes in a path


def differences(
    expected: JsonValue, actual: JsonValue, place: str = "", bindings: Bindings | None = None
) -> Iterator[str]:
    """Yield a sentence for each difference between ``expected`` and ``actual``; it begins with the JSON path.

    ``place``: the path of both values. ``bindings``: captured values; the names that ``expected`` captures are added.
    """
    try:
        yield from _compare(expected, actual, place, {} if bindings is None else bindings)
    except RecursionError:
        yield f"{place or 'value'}: nested too deeply to compare"


def short(value: JsonValue) -> str:
    """Return the beginning of any value that `json` reads, as compact JSON for a sentence."""
    try:
        text = messages.compact(value)
    except ValueError:  # a number that is not finite
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        text = "(nested too deeply to show)"
    return cut(text, _SHOWN)


def sort_like(
    expected: Sequence[JsonValue], actual: Sequence[JsonValue], bindings: Bindings | None = None
) -> list[JsonValue]:
    """Return ``actual`` in the order of ``expected``.

    A message takes the place of the first one that it matches; the others fill the gaps, and come last.
    """
    found = pairs(expected, actual, bindings)
    rest = iter([value for index, value in enumerate(actual) if index not in found.values()])
    places = [actual[found[here]] if here in found else next(rest, _GAP) for here in range(len(expected))]
    return [each for each in [*places, *rest] if each is not _GAP]


def pairs(
    expected: Sequence[JsonValue], actual: Sequence[JsonValue], bindings: Bindings | None = None
) -> dict[int, int]:
    """Map the index of each expected value to that of an actual one that matches. As many as possible get one.

    Each gets the first one that is not yet taken. A value may match several, so if none is left, earlier choices are
    revised along augmenting paths. A later value can refer to what an earlier one captures.
    """
    found: dict[int, int] = {}
    tried = dict(bindings or {})

    @functools.cache
    def candidates(here: int) -> list[int]:
        return [there for there, value in enumerate(actual) if _matches(expected[here], value, tried)]

    for here, value in enumerate(expected):
        taken = {*found.values()}
        free = [there for there in range(len(actual)) if there not in taken]
        first = next((there for there in free if _matches(value, actual[there], tried)), None)
        found = _revised(here, candidates, found) if first is None and taken else found
        if first is not None:
            found[here] = first
        if here in found:
            _is_match(value, actual[found[here]], tried)
    return found


def update(expected: JsonValue, actual: JsonValue, revision: str, bindings: Bindings | None = None) -> JsonValue:
    """Return ``actual`` for a transcript, with the matchers of ``expected`` that still match.

    ``bindings``: as for `differences`.
    """
    bindings = {} if bindings is None else bindings
    if _is_match(matchers.resolve(expected, revision), actual, bindings):
        return expected
    matcher = matchers.read(expected)
    if matcher is not None:
        return _updated_matcher(matcher, actual, revision, bindings)
    if isinstance(expected, dict) and isinstance(actual, dict) and not matchers.is_reserved(actual):
        absent = {key: inner for key, inner in expected.items() if key not in actual and matchers.may_be_absent(inner)}
        return {key: update(expected.get(key), inner, revision, bindings) for key, inner in actual.items()} | absent
    if isinstance(expected, list) and isinstance(actual, list):
        both = zip([*expected, *[None] * len(actual)], actual, strict=False)
        return [update(old, new, revision, bindings) for old, new in both]
    return matchers.literal(actual)


def _is_match(expected: JsonValue, actual: JsonValue, bindings: Bindings) -> bool:
    """Return whether the values match; only then are captured values added to ``bindings``."""
    tried = dict(bindings)
    if any(differences(expected, actual, "", tried)):
        return False
    bindings.update(tried)
    return True


def _matches(expected: JsonValue, actual: JsonValue, bindings: Bindings) -> bool:
    return not any(differences(expected, actual, "", dict(bindings)))


def _updated_matcher(matcher: Matcher, actual: JsonValue, revision: str, bindings: Bindings) -> JsonValue:
    """Return what is left of a matcher that does not match: its structure, and the capture that others refer to."""
    value: JsonValue = matchers.literal(actual)
    if matcher.captures:
        bindings[matcher.captures] = actual
        return {"$capture": matcher.captures}
    if matcher.name == "$subset" and isinstance(actual, dict):
        kept = {key: inner for key, inner in matcher.operand.items() if key in actual or matchers.may_be_absent(inner)}
        value = {
            "$subset": {
                key: update(inner, actual[key], revision, bindings) if key in actual else inner
                for key, inner in kept.items()
            }
        }
    elif matcher.name == "$unordered" and isinstance(actual, list):
        found = {there: here for here, there in pairs(matcher.operand, actual, bindings).items()}
        value = {
            "$unordered": [
                matcher.operand[found[index]] if index in found else matchers.literal(inner)
                for index, inner in enumerate(actual)
            ]
        }
    elif matcher.name == "$json" and isinstance(actual, str) and (parsed := _parsed(actual)) is not None:
        value = {"$json": update(matcher.operand, parsed[0], revision, bindings)}
    return value


def _compare(expected: JsonValue, actual: JsonValue, place: str, bindings: Bindings | None) -> Iterator[str]:
    """Yield the differences; without ``bindings``, ``expected`` is a value of a server, which has no matchers."""
    matcher = None if bindings is None else matchers.read(expected)
    if matcher is not None and bindings is not None:
        if matcher.captures:
            bindings[matcher.captures] = actual
        yield from _COMPARISONS[matcher.name](matcher, actual, place, bindings)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _member(expected, actual, key, place, bindings)
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _items(expected, actual, place, bindings)
    elif isinstance(expected, Redacted) and expected.matches(actual):
        return
    elif json_type(expected) != json_type(actual) or expected != actual:
        yield f"{place or 'value'}: {_unequal(expected, actual)}"


def _member(expected: JsonObject, actual: JsonObject, key: str, place: str, bindings: Bindings | None) -> Iterator[str]:
    below = f"{place}.{key}" if _PLAIN.fullmatch(key) else f"{place}[{messages.compact(key)}]"
    below = below.removeprefix(".")
    if key in actual and key in expected:
        yield from _compare(expected[key], actual[key], below, bindings)
    elif key in actual:
        yield f"{below}: not expected, got {short(actual[key])}"
    elif bindings is None or not matchers.may_be_absent(expected[key]):
        yield f"{below}: missing, expected {short(expected[key])}"


def _items(expected: list[JsonValue], actual: list[JsonValue], place: str, bindings: Bindings | None) -> Iterator[str]:
    wanted, found = (_by_name(each, bindings) for each in (expected, actual))
    if wanted is not None and found is not None and wanted.keys() != found.keys():
        yield f"{place or 'messages'}: {'; '.join(_other_names(wanted.keys(), found.keys()))}"
        for name in (name for name in wanted if name in found):
            yield from _compare(expected[wanted[name]], actual[found[name]], f"{place}[{found[name]}]", bindings)
        return
    if len(expected) != len(actual):
        yield f"{place or 'messages'}: expected {len(expected)}, got {len(actual)}: {short(actual)}"
    for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
        yield from _compare(one, other, f"{place}[{index}]", bindings)


def _by_name(entries: list[JsonValue], bindings: Bindings | None) -> dict[str, int] | None:
    """Map the ``uri`` or ``name`` of each entry, such as a resource or a tool, to its index; None if one has none."""
    names: dict[str, int] = {}
    for index, entry in enumerate(entries):
        matcher = None if bindings is None else matchers.read(entry)
        fields = matcher.operand if matcher is not None and matcher.name == "$subset" else entry
        name = fields.get("uri", fields.get("name")) if isinstance(fields, dict) else None
        if not isinstance(name, str) or name in names:
            return None
        names[name] = index
    return names


def _other_names(wanted: Collection[str], found: Collection[str]) -> Iterator[str]:
    """Yield a phrase for the names that are missing, and one for those that are not expected."""
    for phrase, names, known in (("missing", wanted, found), ("not expected", found, wanted)):
        if listed := ", ".join(name for name in names if name not in known):
            yield f"{phrase}: {cut(listed, _SHOWN)}"


def _unequal(expected: JsonValue, actual: JsonValue) -> str:
    """Describe two different values; of long strings, only the part around the first difference."""
    if isinstance(expected, str) and isinstance(actual, str) and max(len(expected), len(actual)) > _SHOWN:
        both = enumerate(zip(expected, actual, strict=False))
        first = next((index for index, (one, other) in both if one != other), min(len(expected), len(actual)))
        start = max(0, first - _SHOWN // 4)
        shown = [f"{'…' if start else ''}{short(text[start:])}" for text in (expected, actual)]
        return f"from character {first + 1} on, expected {shown[0]}, got {shown[1]}"
    return f"expected {short(expected)}, got {short(actual)}"


def _parsed(text: str) -> tuple[JsonValue] | None:
    """Return the JSON value in ``text`` as the only item; None if it is not JSON."""
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _revised(first: int, candidates: Callable[[int], list[int]], found: dict[int, int]) -> dict[int, int]:
    """Return an assignment that also has ``first``; ``found`` if there is none."""
    owner = {there: here for here, there in found.items()}
    reached: dict[int, int] = {}  # actual → the expected value that led to it
    queue = [first]
    while queue:
        current = queue.pop()
        fresh = [there for there in candidates(current) if there not in reached]
        reached.update(dict.fromkeys(fresh, current))
        if (free := next((there for there in fresh if there not in owner), None)) is not None:
            return _assigned(free, first, reached, found)
        queue += [owner[there] for there in fresh]
    return found


def _assigned(free: int, first: int, reached: dict[int, int], found: dict[int, int]) -> dict[int, int]:
    """Give ``free`` to the expected value that reached it, and its former one to the value before, up to ``first``."""
    changed = dict(found)
    while (here := reached[free]) != first:
        changed[here], free = free, changed[here]
    return {**changed, first: free}


# --- What each matcher compares


def _any(matcher: Matcher, actual: JsonValue, place: str, _: Bindings) -> Iterator[str]:
    kind = json_type(actual)
    if kind != matcher.operand and (kind, matcher.operand) != ("integer", "number"):
        yield f"{place or 'value'}: expected any {matcher.operand}, got {short(actual)}"


def _expression(matcher: Matcher, actual: JsonValue, place: str, _: Bindings) -> Iterator[str]:
    if not isinstance(actual, str) or not keywords.full_match(matcher.operand, actual):
        yield f"{place or 'value'}: expected a string that matches {short(matcher.operand)}, got {short(actual)}"


def _nothing(_: Matcher, __: JsonValue, ___: str, ____: Bindings) -> Iterator[str]:
    yield from ()


def _subset(matcher: Matcher, actual: JsonValue, place: str, bindings: Bindings) -> Iterator[str]:
    if not isinstance(actual, dict):
        yield f"{place or 'value'}: expected an object, got {short(actual)}"
        return
    for key in matcher.operand:
        yield from _member(matcher.operand, actual, key, place, bindings)


def _unordered(matcher: Matcher, actual: JsonValue, place: str, bindings: Bindings) -> Iterator[str]:
    if not isinstance(actual, list):
        yield f"{place or 'value'}: expected a list, got {short(actual)}"
        return
    found = pairs(matcher.operand, actual, bindings)
    for here, there in sorted(found.items()):  # again, to capture values
        yield from _compare(matcher.operand[here], actual[there], f"{place}[{there}]", bindings)
    missing = [inner for index, inner in enumerate(matcher.operand) if index not in found]
    extra = [index for index in range(len(actual)) if index not in found.values()]
    if len(missing) == len(extra) == 1:
        yield from _compare(missing[0], actual[extra[0]], f"{place}[{extra[0]}]", bindings)
        return
    for inner in missing:
        yield f"{place or 'value'}: missing in any order, expected {short(inner)}"
    for index in extra:
        yield f"{place}[{index}]: not expected, got {short(actual[index])}"


def _json(matcher: Matcher, actual: JsonValue, place: str, bindings: Bindings) -> Iterator[str]:
    parsed = _parsed(actual) if isinstance(actual, str) else None
    if parsed is None:
        yield f"{place or 'value'}: expected a string with JSON, got {short(actual)}"
    else:
        yield from _compare(matcher.operand, parsed[0], f"{place}<JSON>", bindings)


def _reference(matcher: Matcher, actual: JsonValue, place: str, bindings: Bindings) -> Iterator[str]:
    if matcher.operand not in bindings:
        yield f"{place or 'value'}: nothing was captured as {matcher.operand}, got {short(actual)}"
    else:
        yield from _compare(bindings[matcher.operand], actual, place, None)


def _literal(matcher: Matcher, actual: JsonValue, place: str, _: Bindings) -> Iterator[str]:
    yield from _compare(matcher.operand, actual, place, None)


_COMPARISONS: dict[str, Callable[[Matcher, Any, str, Bindings], Iterator[str]]] = {
    "$any": _any,
    "$re": _expression,
    "$ignore": _nothing,
    "$subset": _subset,
    "$unordered": _unordered,
    "$json": _json,
    "$capture": _nothing,
    "$ref": _reference,
    "$literal": _literal,
    "$var": _literal,
}
