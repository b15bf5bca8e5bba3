"""Compare two resolved documents, or everything two folders serve, and classify each change by its client impact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tmkb.schema import documents, impact, widening
from tmkb.schema.documents import Schemas
from tmkb.schema.impact import ADDITIVE, BREAKING, COSMETIC, Impact
from tmkb.schema.reader import Document, Path, Position
from tmkb.schema.values import JsonValue

_NOWHERE = Position("", 1, 1)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `sign`: ``+`` added, ``-`` removed, ``~`` changed; the path of a whole file is empty.

    `at`: the position of the new value, or of a removed one. `servers`: the servers whose clients are affected.
    """

    path: Path
    sign: str
    before: JsonValue
    after: JsonValue
    impact: str
    at: Position = _NOWHERE
    servers: tuple[str, ...] = ()


def between(kind: str, old: Document | None, new: Document | None) -> Iterator[Change]:
    """Yield every change from ``old`` to ``new``; one of them may be None."""
    rules = impact.of(kind)
    before, after = (doc.value if doc else None for doc in (old, new))
    for change in _changes(rules, before, after, ()) if old and new else [_change(rules, (), before, after)]:
        doc = old if change.sign == "-" else new
        if doc is not None:
            # The position of a whole file is in that file, not in a file that it extends.
            yield replace(change, at=doc.origin(change.path) if change.path else Position(doc.file, 1, 1))


def of_values(kind: str, before: JsonValue, after: JsonValue) -> list[Change]:
    """Return every change between two values that the meta-schema ``kind`` describes, most severe first."""
    return ordered(_changes(impact.of(kind), before, after, ()))


def served(old: Schemas, new: Schemas) -> list[Change]:
    """Return every change that clients of any server can observe, once with all its servers, most severe first."""
    changes: dict[str, Change] = {}
    servers = [{documents.name(at) for at in each.documents if documents.kind(at) == "server"} for each in (old, new)]
    for server in sorted(servers[0] | servers[1]):
        before, after = (
            _parts(each, server) if server in names else {} for each, names in zip((old, new), servers, strict=True)
        )
        for change in _of_server(before, after):
            first = changes.setdefault(repr(change), change)
            changes[repr(change)] = replace(first, servers=tuple(dict.fromkeys([*first.servers, server])))
    return ordered(changes.values())


def ordered(changes: Iterable[Change]) -> list[Change]:
    """Return ``changes`` sorted by impact, most severe first, then by position."""
    return sorted(changes, key=lambda change: (impact.IMPACTS.index(change.impact), change.at))


_Part = tuple[str, str]  # kind of file, and a name that both sides share
_WHOLE = ("server", "tool", "prompt", "resource")  # added or removed on their own; others are referenced by them


def _parts(schemas: Schemas, server: str) -> dict[_Part, Document]:
    """Return every document that clients of ``server`` can observe."""
    docs = schemas.documents
    parts = {(str(documents.kind(at)), at): doc for at, doc in docs.items() if at.startswith(f"servers/{server}/")}
    parts = {part: doc for part, doc in parts.items() if part[0] in _WHOLE}
    revisions: Any = docs[f"servers/{server}/server"].mapping()["revisions"]
    for name in revisions:
        doc = docs[f"protocol/{name}"]
        lifecycle = f"lifecycle/{doc.mapping()['lifecycle']}"
        without_errors = {key: value for key, value in doc.mapping().items() if key != "errors"}
        parts["revision", name] = Document(doc.file, without_errors, doc.values, doc.keys)
        parts["errors", name] = schemas.error_table(server, name).part(("errors",)).under("errors")
        parts["lifecycle", lifecycle] = docs[lifecycle]
    parts["errors", "types"] = docs["errors"].part(("types",)).under("types")
    return parts


def _of_server(before: Mapping[_Part, Document], after: Mapping[_Part, Document]) -> Iterator[Change]:
    for part in {**before, **after}:
        kind = part[0]
        both = part in before and part in after
        if both or kind in _WHOLE:
            yield from between(kind, before.get(part), after.get(part))


def _changes(rules: Impact, before: Any, after: Any, path: Path) -> Iterator[Change]:
    """Compare maps by key, lists of scalars as sets, and other lists of equal length by index."""
    side = rules.schema_side()
    if widening.same(before, after):
        return
    if None in (before, after):
        yield _change(rules, path, before, after)
    elif side:
        for each in widening.differences(before, after):
            yield Change((*path, *each.path), *each[1:4], _SIDES[side].get(each.direction, BREAKING))
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _changes(rules.inside(key), before.get(key), after.get(key), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list(rules, before, after, path)
    else:
        yield _change(rules, path, before, after)


def _list(rules: Impact, before: list[Any], after: list[Any], path: Path) -> Iterator[Change]:
    if not any(isinstance(entry, dict | list) for entry in [*before, *after]):
        removed, added = [x for x in before if x not in after], [x for x in after if x not in before]
        common = [x for x in before if x in after], [x for x in after if x in before]
        replaced = removed and added and not common[0]  # one change of the whole list, not one for each entry
        if not replaced:
            yield from (Change(path, "-", entry, None, rules.impact("-", entry, None)) for entry in removed)
            yield from (Change(path, "+", None, entry, rules.impact("+", None, entry)) for entry in added)
        if replaced or common[0] != common[1] or not (removed or added):
            yield _change(rules, path, before, after)
    elif len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(rules.inside(index), one, other, (*path, index))
    else:
        yield _change(rules, path, before, after)


def _change(rules: Impact, path: Path, before: JsonValue, after: JsonValue) -> Change:
    sign = "+" if before is None else "-" if after is None else "~"
    return Change(path, sign, before, after, rules.impact(sign, before, after))


# A wider JSON Schema of a client's input is additive, and so is a narrower one of its output.
_BOTH = {"words": COSMETIC, "new": ADDITIVE}
_SIDES = {"input": {"wider": ADDITIVE, **_BOTH}, "output": {"narrower": ADDITIVE, **_BOTH}, "both": _BOTH}
