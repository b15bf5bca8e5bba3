"""``extends``: JSON Merge Patch (RFC 7386) over documents, so that each value still knows the file it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmkb.document import Document, Path
from tmkb.errors import Problem
from tmkb.metaschema import near
from tmkb.values import JsonValue


def merge(base: Document, patch: Document, problems: list[Problem]) -> Document:
    """``base`` changed by ``patch``: maps merge, null removes, all else replaces.

    Null for what is not there is a problem. The key ``extends`` has done its work and is not kept.
    """
    result = Document(patch.file, None, dict(base.values), dict(base.keys))
    result.value = _merged(result, base.value, patch, (), problems)
    return result


def resolve(
    place: str, layers: Mapping[str, Sequence[Document]], base: Document | None, problems: list[Problem]
) -> Document | None:
    """The document at ``place`` with everything it extends merged in, oldest first, on top of ``base``.

    ``layers`` has for each place the packaged file and what overlays put on it, lowest first; the lowest may extend
    a neighbour of its folder. None, and a problem, where that does not exist or the chain runs in a circle.
    """
    folder = place.rpartition("/")[0]
    neighbours = {name.rpartition("/")[2]: docs for name, docs in layers.items() if name.rpartition("/")[0] == folder}
    line = [place.rpartition("/")[2]]
    while (parent := neighbours[line[-1]][0].mapping().get("extends")) is not None:
        child = neighbours[line[-1]][0]
        if not isinstance(parent, str) or parent not in neighbours:
            hint = near(str(parent), neighbours)
            problems.append(child.problem("unknown_name", ("extends",), kind="parent", name=str(parent), **hint))
            return None
        if parent in line:
            problems.append(child.problem("circular", ("extends",), chain=" → ".join([*line, parent])))
            return None
        line.append(parent)
    resolved = base or Document(layers[place][-1].file, {}, {}, {})
    for link in reversed(line):
        for layer in neighbours[link]:
            resolved = merge(resolved, layer, problems)
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
        _forget(result, path)
        _adopt(result, patch, path)
        return new
    if not isinstance(old, dict):
        _forget(result, path)
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
            del merged[key]
            _forget(result, here)
        else:
            problems.append(patch.key_problem("nothing_to_remove", here, key=key, **near(key, old)))
    return merged


def _note(result: Document, patch: Document, path: Path) -> None:
    if path in patch.values:  # the top of a part that was put under a key stands in no file
        result.values.setdefault(path, patch.values[path])


def _note_key(result: Document, patch: Document, path: Path) -> None:
    if path in patch.keys:
        result.keys[path] = patch.keys[path]


def _forget(doc: Document, path: Path) -> None:
    for table in (doc.values, doc.keys):
        for known in [known for known in table if known[: len(path)] == path]:
            del table[known]


def _adopt(doc: Document, patch: Document, path: Path) -> None:
    for mine, theirs in ((doc.values, patch.values), (doc.keys, patch.keys)):
        mine.update({known: place for known, place in theirs.items() if known[: len(path)] == path})
