"""``extends``: JSON Merge Patch (RFC 7386) over documents, so that each value still knows the file it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tmkb.errors import Problem
from tmkb.schema.metaschema import near
from tmkb.schema.reader import Document, Path
from tmkb.schema.values import JsonValue


def merge(base: Document, patch: Document, problems: list[Problem]) -> Document:
    """``base`` changed by ``patch``: maps merge, null removes, all else replaces.

    Null for what is not there is a problem. The key ``extends`` has done its work and is not kept.
    """
    result = Document(patch.file, None, dict(base.values), dict(base.keys))
    result.value = _merged(result, base.value, patch, (), problems)
    return result


def resolve(
    name: str, neighbours: Mapping[str, Sequence[Document]], base: Document | None, problems: list[Problem]
) -> Document | None:
    """The document called ``name`` with everything it extends merged in, oldest first, on top of ``base``.

    ``neighbours`` has it, and what it may extend, by their names: each the packaged file and what overlays put on it,
    lowest first; the lowest says what it extends. None, and a problem, where that does not exist or the chain runs in
    a circle.
    """
    line = [name]
    while (parent := neighbours[line[-1]][0].mapping().get("extends")) is not None:
        child = neighbours[line[-1]][0]
        if not isinstance(parent, str) or parent not in neighbours:
            hint = near(str(parent), [other for other in [*neighbours, "packaged"] if other != name])
            problems.append(child.problem("unknown_name", ("extends",), kind="parent", name=str(parent), **hint))
            return None
        if parent in line:
            problems.append(child.problem("circular", ("extends",), chain=" → ".join([*line, parent])))
            return None
        line.append(parent)
    resolved = base or Document(neighbours[name][-1].file, {}, {}, {})
    overlaid = False
    for link in reversed(line):
        lowest, *overlays = neighbours[link]
        # What an overlay has taken from a parent its children may take away again, without being at fault.
        resolved = merge(resolved, lowest, [] if overlaid else problems)
        for layer in overlays:
            resolved = merge(resolved, layer, problems)
        overlaid = overlaid or bool(overlays)
    if base is not None:  # what the file itself says comes first
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
    _note(result, patch, path)
    merged = dict(old)
    for key, value in new.items():
        here = (*path, key)
        if here == ("extends",):
            continue
        if value is not None:
            merged[key] = _merged(result, old.get(key), patch, here, problems)
            _note_key(result, patch, here)
        elif key in merged:
            _forget(result, merged.pop(key), here)
        else:
            problems.append(patch.key_problem("nothing_to_remove", here, key=key, **near(key, old)))
    return merged


def _note(result: Document, patch: Document, path: Path) -> None:
    if path in patch.values:  # the top of a part that was put under a key stands in no file
        result.values.setdefault(path, patch.values[path])


def _note_key(result: Document, patch: Document, path: Path) -> None:
    if path in patch.keys:
        result.keys[path] = patch.keys[path]


def _forget(doc: Document, old: JsonValue, path: Path) -> None:
    for known in _paths(old, path):
        doc.values.pop(known, None)
        doc.keys.pop(known, None)


def _adopt(doc: Document, patch: Document, new: JsonValue, path: Path) -> None:
    for known in _paths(new, path):
        _note(doc, patch, known)
        _note_key(doc, patch, known)


def _paths(value: JsonValue, path: Path) -> Iterator[Path]:
    """The path of ``value`` and of every part of it."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        yield from _paths(part, (*path, step))
