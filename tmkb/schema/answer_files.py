"""Replace ``{$file: PATH}`` in answers and steps by the text of the file, when the YAML file is read.

The file is beside the YAML file or below its folder, so it is watched and cached with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import paths, reader, textfile
from tmkb.schema.reader import Document, Path, Position

LIMIT = textfile.LARGEST  # bytes of all files that one YAML file names
_KEYS = ("answer", "steps")  # of a tool, a prompt or a resource, and of each tool of a service


def insert(doc: Document, file: str) -> list[Problem]:
    """Replace each reference in ``doc``, which was read from ``file``, and return the problems.

    A reference with a problem stays. The text has the position of the start of its file.
    """
    problems: list[Problem] = []
    total, folder = 0, os.path.dirname(file) or os.curdir
    for path in [*_references(doc.value)]:
        name = reader.at(doc.value, path)["$file"]
        whole = os.path.join(folder, name)
        shown = paths.shown(whole)
        if fault := _refused(doc, path, name, folder):
            problems.append(fault)
            continue
        try:
            text = textfile.read(whole, shown, LIMIT)
        except DocumentError as error:
            problems += [_at_reference(doc, path, each) for each in error.problems]
            continue
        total += len(text)
        if total > LIMIT:
            problems.append(doc.problem("too_much_text", (*path, "$file"), limit=LIMIT))
            break
        _replace(doc, path, text.replace("\r\n", "\n"), Position(shown, 1, 1))
    return problems


def _references(value: Any) -> Iterator[Path]:
    """Yield the path of each reference in the answers of a file."""
    if not isinstance(value, dict):
        return
    tools = value.get("tools") if value.get("kind") == "service" else None
    for path, holder in [((), value), *((("tools", number), tool) for number, tool in reader.entries(tools))]:
        for key in _KEYS if isinstance(holder, dict) else ():
            yield from _inside(holder.get(key), (*path, key))


def _inside(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and list(value) == ["$file"] and isinstance(value["$file"], str):
        yield path
        return
    for step, inner in reader.entries(value):
        yield from _inside(inner, (*path, step))


def _refused(doc: Document, path: Path, name: str, folder: str) -> Problem | None:
    """Return the problem of a file that may not be read; None if it may. ``folder``: of the YAML file."""
    if "\0" in name or not name:
        return doc.problem("no_text_file", (*path, "$file"), path=name, reason="this is no path")
    if os.path.isabs(name) or not paths.is_below(os.path.join(folder, name), folder):
        return doc.problem("text_file_outside", (*path, "$file"), path=name)
    if name.endswith(reader.SUFFIXES):
        return doc.problem("text_file_is_schema", (*path, "$file"), path=name)
    return None


def _at_reference(doc: Document, path: Path, problem: Problem) -> Problem:
    """Return ``problem`` of a file; if no text can be read from it, at the reference to it."""
    reason = {"unreadable": problem.fields.get("reason"), "not_regular": f"it is a {problem.fields.get('kind')}"}
    if problem.rule not in reason:
        return problem
    return doc.problem("no_text_file", (*path, "$file"), path=problem.file, reason=reason[problem.rule])


def _replace(doc: Document, path: Path, text: str, position: Position) -> None:
    reader.at(doc.value, path[:-1])[path[-1]] = text
    for table in (doc.values, doc.keys):
        table.pop((*path, "$file"), None)
    doc.values[path] = position
