"""What differs between two resolved documents of one kind, or between all that is served, and how clients notice it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tmkb.schema import documents, widening
from tmkb.schema import impact as notice
from tmkb.schema.documents import Schemas
from tmkb.schema.impact import ADDITIVE, BREAKING, COSMETIC, Notice
from tmkb.schema.reader import Document, Path, Position
from tmkb.schema.values import JsonValue

_NOWHERE = Position("", 1, 1)


@dataclass(frozen=True, slots=True)
class Change:
    """One place that is not the same. `sign`: ``+`` added, ``-`` removed, ``~`` changed; a whole file has no path.

    `at` is where the new value stands, or the old one where it was removed; `servers` are those that it is noticed of.
    """

    path: Path
    sign: str
    before: JsonValue
    after: JsonValue
    impact: str
    at: Position = _NOWHERE
    servers: tuple[str, ...] = ()


def between(kind: str, old: Document | None, new: Document | None) -> Iterator[Change]:
    """Every change from ``old`` to ``new``, of which one may be missing."""
    about = notice.of(kind)
    before, after = (doc.value if doc else None for doc in (old, new))
    for change in _changes(about, before, after, ()) if old and new else [_change(about, (), before, after)]:
        doc = old if change.sign == "-" else new
        if doc is not None:
            # A whole file is where it was written, not where what it extends begins.
            yield replace(change, at=doc.origin(change.path) if change.path else Position(doc.file, 1, 1))


def served(old: Schemas, new: Schemas) -> list[Change]:
    """Every change of what clients of any server are told, each once with all the servers; the gravest first."""
    found: dict[str, Change] = {}
    servers = [{documents.name(at) for at in each.documents if documents.kind(at) == "server"} for each in (old, new)]
    for server in sorted(servers[0] | servers[1]):
        before, after = (
            _parts(each, server) if server in known else {} for each, known in zip((old, new), servers, strict=True)
        )
        for change in _of_server(before, after):
            known = found.setdefault(repr(change), change)
            found[repr(change)] = replace(known, servers=tuple(dict.fromkeys([*known.servers, server])))
    return ordered(found.values())


def ordered(found: Iterable[Change]) -> list[Change]:
    """The gravest first, then as they stand in the files."""
    return sorted(found, key=lambda change: (notice.IMPACTS.index(change.impact), change.at))


_Part = tuple[str, str]  # the kind of file, and a name that is the same on both sides
_WHOLE = ("server", "tool", "prompt", "resource")  # that come and go by themselves; the others are named by them


def _parts(found: Schemas, server: str) -> dict[_Part, Document]:
    """All that clients of ``server`` are told, wherever it stands."""
    docs = found.documents
    parts = {(str(documents.kind(at)), at): doc for at, doc in docs.items() if at.startswith(f"servers/{server}/")}
    parts = {part: doc for part, doc in parts.items() if part[0] in _WHOLE}
    revisions: Any = docs[f"servers/{server}/server"].mapping()["revisions"]
    for name in revisions:
        doc = docs[f"protocol/{name}"]
        lifecycle = f"lifecycle/{doc.mapping()['lifecycle']}"
        told = {key: value for key, value in doc.mapping().items() if key != "errors"}
        parts["revision", name] = Document(doc.file, told, doc.values, doc.keys)
        parts["errors", name] = found.error_table(server, name).part(("errors",)).under("errors")
        parts["lifecycle", lifecycle] = docs[lifecycle]
    parts["errors", "types"] = docs["errors"].part(("types",)).under("types")
    return parts


def _of_server(before: Mapping[_Part, Document], after: Mapping[_Part, Document]) -> Iterator[Change]:
    for part in {**before, **after}:
        kind = part[0]
        both = part in before and part in after
        if both or kind in _WHOLE:
            yield from between(kind, before.get(part), after.get(part))


def _changes(about: Notice, before: Any, after: Any, path: Path) -> Iterator[Change]:
    """Maps are compared key by key, lists of plain values as what comes and goes, others of one length by entries."""
    side = about.of_schema()
    if widening.same(before, after):
        return
    if None in (before, after):
        yield _change(about, path, before, after)
    elif side:
        for found in widening.differences(before, after):
            yield Change((*path, *found.path), *found[1:4], _SIDES[side].get(found.direction, BREAKING))
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _changes(about.inside(key), before.get(key), after.get(key), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list(about, before, after, path)
    else:
        yield _change(about, path, before, after)


def _list(about: Notice, before: list[Any], after: list[Any], path: Path) -> Iterator[Change]:
    if not any(isinstance(entry, dict | list) for entry in [*before, *after]):
        gone, come = [x for x in before if x not in after], [x for x in after if x not in before]
        kept = [x for x in before if x in after], [x for x in after if x in before]
        another = gone and come and not kept[0]  # rather one list for the other than entries that come and go
        if not another:
            yield from (Change(path, "-", entry, None, about.impact("-", entry, None)) for entry in gone)
            yield from (Change(path, "+", None, entry, about.impact("+", None, entry)) for entry in come)
        if another or kept[0] != kept[1] or not (gone or come):
            yield _change(about, path, before, after)
    elif len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(about.inside(index), one, other, (*path, index))
    else:
        yield _change(about, path, before, after)


def _change(about: Notice, path: Path, before: JsonValue, after: JsonValue) -> Change:
    sign = "+" if before is None else "-" if after is None else "~"
    return Change(path, sign, before, after, about.impact(sign, before, after))


# A JSON Schema of what clients give may become wider, one of what they get narrower.
_ALIKE = {"words": COSMETIC, "new": ADDITIVE}
_SIDES = {"given": {"wider": ADDITIVE, **_ALIKE}, "got": {"narrower": ADDITIVE, **_ALIKE}, "both": _ALIKE}
