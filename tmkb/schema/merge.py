"""Resolve ``extends``: apply JSON Merge Patch (RFC 7386) to documents and keep the origin of every value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tmkb.errors import Problem
from tmkb.schema.metaschema import near
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue


def merge(base: Document, patch: Document, problems: list[Problem]) -> Document:
    """Return ``base`` changed by ``patch``: maps merge, null removes, any other value replaces.

    Null for a missing key is added to ``problems``. The key ``extends`` is dropped.
    """
    result = Document(patch.file, None, dict(base.values), dict(base.keys))
    result.value = _merged(result, base.value, patch, (), problems)
    return result


def resolve(
    name: str, neighbours: Mapping[str, Sequence[Document]], base: Document | None, problems: list[Problem]
) -> Document | None:
    """Return the document ``name`` merged into all that it extends, with ``base`` as the lowest layer.

    ``neighbours``: the layers of this document and of those it can extend, by name, lowest first. The lowest layer has
    the `extends`. Returns None, and adds a problem, if the parent is missing or `extends` is circular.
    """
    chain = [name]
    while (parent := neighbours[chain[-1]][0].mapping().get("extends")) is not None:
        child = neighbours[chain[-1]][0]
        if not isinstance(parent, str) or parent not in neighbours:
            hint = near(str(parent), [other for other in [*neighbours, "packaged"] if other != name])
            problems.append(child.problem("unknown_name", ("extends",), kind="parent", name=str(parent), **hint))
            return None
        if parent in chain:
            problems.append(child.problem("circular", ("extends",), chain=" → ".join([*chain, parent])))
            return None
        chain.append(parent)
    resolved = base or Document(neighbours[name][-1].file, {}, {}, {})
    overlaid = False
    for link in reversed(chain):
        lowest, *overlays = neighbours[link]
        # A child may remove a key that an overlay has already removed from its parent.
        resolved = merge(resolved, lowest, [] if overlaid else problems)
        for layer in overlays:
            resolved = merge(resolved, layer, problems)
        overlaid = overlaid or bool(overlays)
    if base is not None:  # keys of the file come before those of the base
        value = resolved.mapping()
        resolved.value = {key: value[key] for key in sorted(value, key=lambda key: key in base.mapping())}
    return resolved


def _merged(result: Document, old: JsonValue, patch: Document, path: Path, problems: list[Problem]) -> JsonValue:
    new: JsonValue = patch.value
    for part in path:
        assert isinstance(new, dict)
        new = new[str(part)]
    if not isinstance(new, dict):
        _forget(result, old, path)
        _adopt(result, patch, new, path)
        return new
    if not isinstance(old, dict):
        _forget(result, old, path)
        old = {}
    _record(result, patch, path)
    merged = dict(old)
    for key, value in new.items():
        here = (*path, key)
        if here == ("extends",):
            continue
        if value is not None:
            merged[key] = _merged(result, old.get(key), patch, here, problems)
            _record_key(result, patch, here)
        elif key in merged:
            _forget(result, merged.pop(key), here)
        else:
            problems.append(patch.key_problem("nothing_to_remove", here, key=key, **near(key, old)))
    return merged


def _record(result: Document, patch: Document, path: Path) -> None:
    if path in patch.values:  # `Document.under` adds a level without a position
        result.values.setdefault(path, patch.values[path])


def _record_key(result: Document, patch: Document, path: Path) -> None:
    if path in patch.keys:
        result.keys[path] = patch.keys[path]


def _forget(doc: Document, old: JsonValue, path: Path) -> None:
    for known in _paths(old, path):
        doc.values.pop(known, None)
        doc.keys.pop(known, None)


def _adopt(doc: Document, patch: Document, new: JsonValue, path: Path) -> None:
    for known in _paths(new, path):
        _record(doc, patch, known)
        _record_key(doc, patch, known)


def _paths(value: JsonValue, path: Path) -> Iterator[Path]:
    """Yield the path of ``value`` and of every value in it."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        yield from _paths(part, (*path, step))
