"""Where a pattern comes from, and whether its proof ran green on the very bytes that are here.

``tmkb prove --record`` writes ``_proven.yaml`` beside the folders of the patterns: for each pattern that was proven in
full, a SHA-256, the day and the release. Whoever shows a pattern compares; nothing is run for that.

The digest covers

- ``pattern.yaml``, whole: it names the code, and says what a mitigation leaves open and what is left unproven. Its
  prose counts too: what readers are shown should be what was proven, and nobody has to judge which change is harmless;
- the code it names: the vulnerable file, each mitigation's example, the proof;
- the modules of ``tmkb.authoring.proofs`` that this code imports (the stage), and those that they import: on
  another stage the same proof could come out otherwise.

It does not cover what judges proofs (runner, worker, mutants) or the libraries beneath: a release proves everything
with them anew anyway. Nor files in the folder that nothing names.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples
from tmkb.knowledge.pattern import Pattern, folder_name
from tmkb.schema import metaschema, paths, reader

Status = Literal["proven", "changed", "unproven"]
Line = dict[str, str]  # sha256, date, tmkb

NAME = "_proven.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "proven.yaml")
_PACKAGE = "tmkb.authoring.proofs"
_HEAD = """\
# Written by `tmkb prove --record`, never by hand.
kind: proven
patterns:"""


def status(folder: str, pattern: Pattern) -> Status:
    """Whether the ``pattern`` in ``folder`` was proven as it stands there, or has changed since, or never was."""
    found = line(folder, pattern)
    if found is None or "code" not in pattern:
        return "unproven"
    return "proven" if found["sha256"] == digest(folder, pattern) else "changed"


def line(folder: str, pattern: Pattern) -> Line | None:
    """What is recorded of the ``pattern`` in ``folder``; None where nothing is."""
    return recorded(_record(folder))[0].get(pattern["id"])


def facts(folder: str, pattern: Pattern) -> dict[str, Any]:
    """Where the ``pattern`` in ``folder`` comes from, for readers; ``proven`` says when, and by which release."""
    found = line(folder, pattern)
    return {
        "version": pattern["version"],
        "reviewed": pattern["reviewed"],
        "sources": pattern["references"].get("sources", []),
        "proof": status(folder, pattern),
        "proven": found and {"date": found["date"], "tmkb": found["tmkb"]},
    }


def digest(folder: str, pattern: Pattern) -> str:
    """One SHA-256 over names, sizes and bytes of the files that the proof of ``pattern`` stands on."""
    names = ["pattern.yaml", *_code(folder, pattern)]
    files = {name: _bytes(os.path.join(folder, name)) for name in names}
    files |= _stage(content for name, content in files.items() if name.endswith(".py"))
    made = hashlib.sha256()
    for name, content in sorted(files.items()):
        made.update(f"{name}\0{len(content)}\0".encode() + content)
    return made.hexdigest()


def recorded(path: str) -> tuple[Mapping[str, Line], list[Problem]]:
    """What the record at ``path`` says, by id, and what is wrong with it; a record with a fault says nothing."""
    try:
        found = os.stat(path)
    except OSError:
        return {}, []
    return _read(path, found.st_mtime_ns, found.st_size)


def problems(folders: Iterable[str]) -> list[Problem]:
    """What is wrong with the records for the patterns in ``folders``."""
    return [problem for path in dict.fromkeys(map(_record, folders)) for problem in recorded(path)[1]]


def record(runs: Mapping[str, tuple[str, str | None]], date: str, release: str) -> list[str]:
    """Write down runs: id → (folder, the digest of what was proven, or None where it was not); gives the files written.

    A line stays as it is where it already says the same, and where its pattern was not run but is still there.
    """
    written = []
    for path in dict.fromkeys(_record(folder) for folder, _ in runs.values()):
        before = recorded(path)[0]
        lines = {id_: each for id_, each in before.items() if id_ not in runs and _is_there(path, id_)}
        for id_, (folder, proven) in runs.items():
            if proven and _record(folder) == path:
                same = id_ in before and before[id_]["sha256"] == proven
                lines[id_] = before[id_] if same else {"sha256": proven, "date": date, "tmkb": release}
        _replace(path, metaschema.pointed(_text(lines), SCHEMA, path))
        written.append(path)
    _read.cache_clear()
    return written


def _replace(path: str, text: str) -> None:
    """Put a file with ``text`` at ``path`` in one step; a link or FIFO there is replaced, not followed or opened."""
    temporary = f"{path}.{os.getpid()}"
    with suppress(FileNotFoundError):  # left by a process that was killed
        os.remove(temporary)
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(temporary)
        raise OSError(error.errno, error.strerror, path) from error


def _record(folder: str) -> str:
    """The record for the pattern in ``folder``."""
    return os.path.join(os.path.dirname(os.path.abspath(folder)), NAME)


@functools.lru_cache(maxsize=16)
def _read(path: str, _changed: int, _size: int) -> tuple[Mapping[str, Line], list[Problem]]:
    try:
        doc = reader.read(path, paths.shown(path))
    except DocumentError as error:
        return {}, error.problems
    found = metaschema.check(doc, SCHEMA)
    value: Any = doc.value
    return ({}, found) if found else (value["patterns"], [])


def _is_there(path: str, id_: str) -> bool:
    return os.path.isfile(os.path.join(os.path.dirname(path), folder_name(id_), "pattern.yaml"))


def _text(lines: Mapping[str, Line]) -> str:
    said = [
        f"  {id_}: {{{', '.join(f'{k}: {json.dumps(v)}' for k, v in each.items())}}}" for id_, each in lines.items()
    ]
    return "\n".join([_HEAD, *sorted(said)]) + "\n" if said else f"{_HEAD} {{}}\n"


def _code(folder: str, pattern: Pattern) -> Iterator[str]:
    """Yield the files beside ``pattern.yaml`` that it or attacks.yaml names."""
    if code := pattern.get("code"):
        names = (code["vulnerable"], code.get("app"), code.get("attacks"), examples.proof_file(code))
        yield from filter(None, names)
        attacks = attacks_file.read(folder)[0] if "attacks" in code else None
        yield from (wrong.file for wrong in attacks.wrong.values()) if attacks else ()
    yield from (mitigation["example"] for mitigation in pattern["mitigations"] if "example" in mitigation)


def _stage(sources: Iterable[bytes]) -> dict[str, bytes]:
    """The modules of the package of proofs that ``sources`` import, and those that these import."""
    found: dict[str, bytes] = {}
    waiting = [name for source in sources for name in _imported(source)]
    while waiting:
        name = waiting.pop()
        path = os.path.join(paths.PROOF, *name.split("."))
        path = os.path.join(path, "__init__.py") if os.path.isdir(path) else f"{path}.py"
        key = f"{_PACKAGE}/{os.path.relpath(path, paths.PROOF)}".replace(os.sep, "/")
        if key not in found and os.path.isfile(path):
            found[key] = _bytes(path)
            waiting += _imported(found[key])
    return found


def _imported(source: bytes) -> Iterator[str]:
    """The modules of the package of proofs that ``source`` names, without the package's own name; that one is ""."""
    # As text, like every reader of patterns: as bytes, a comment could name another encoding, or one that is none.
    for node in ast.walk(ast.parse(source.decode("utf-8-sig"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            if f"{name}.".startswith(f"{_PACKAGE}."):
                yield from ("", name.removeprefix(_PACKAGE).removeprefix("."))


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
