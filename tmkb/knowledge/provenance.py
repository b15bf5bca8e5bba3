"""Record proofs of patterns, and tell whether a pattern is still the one that was proven.

``tmkb prove --record`` writes ``_proven.yaml`` beside the folders of the patterns. For each proven pattern it contains
two SHA-256 digests, the date and the release. To show a pattern's status, the digests are compared; nothing is run.
The digest ``wrong`` covers the wrong fixes. A wheel has none, and there it is not compared. ``sha256`` covers

- ``pattern.yaml``, including its prose: it names the code, what a mitigation leaves open and what is unproven, and
  nobody has to judge which changes are harmless;
- the code that it names: the vulnerable file, the example of each mitigation, the proof;
- the modules of ``tmkb.authoring.proofs`` that this code imports, directly or indirectly (the stage), because the same
  proof can have another outcome on another stage.

It does not cover the modules that run proofs (runner, worker, mutants) or third-party libraries: each release proves
all patterns again. Files in the folder that nothing names do not count either.

The record also has a digest of each idiom in another stack, see `tmkb.knowledge.idioms`: under ``idioms`` of those on
whose applications all attacks were played, and under ``compiled`` of those that the parser of their language accepted.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples
from tmkb.knowledge.pattern import Pattern, folder_name
from tmkb.schema import metaschema, packed, paths, reader, textfile

Status = Literal["proven", "changed", "unproven"]
Digest = dict[str, str]  # the two digests
Proven = dict[str, Any]  # sha256, wrong if there are wrong fixes, date, tmkb, and idioms and compiled: stack → digest
Checked = dict[str, dict[str, str]]  # idioms and compiled, of the record

NAME = "_proven.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "proven.yaml")
_DIGESTS = ("sha256", "wrong")
CHECKED = ("idioms", "compiled")
_PACKAGE = "tmkb.authoring.proofs"
_HEAD = """\
# Written by `tmkb prove --record`, never by hand.
kind: proven
patterns:"""


def status(folder: str, pattern: Pattern) -> Status:
    """Return whether the ``pattern`` in ``folder`` is proven, has changed since, or was never proven."""
    proven = lookup(folder, pattern)
    if proven is None or "code" not in pattern:
        return "unproven"
    now = digest(folder, pattern)
    known = proof(proven)
    if not attacks_file.has_wrong_fixes(folder):
        known.pop("wrong", None)
    return "proven" if now == known else "changed"


def lookup(folder: str, pattern: Pattern) -> Proven | None:
    """Return what is recorded about the ``pattern`` in ``folder``."""
    return read(record_path(folder))[0].get(pattern["id"])


def proof(entry: Proven) -> Digest:
    """Return the digests of the proof in an entry of a record."""
    return {key: entry[key] for key in _DIGESTS if key in entry}


def facts(folder: str, pattern: Pattern) -> dict[str, Any]:
    """Return version, review date, sources, proof status and number of attacks of the ``pattern``, for readers."""
    proven = lookup(folder, pattern)
    attacks = attacks_file.read(folder)[0] if "attacks" in pattern.get("code", {}) else None
    return {
        "version": pattern["version"],
        "reviewed": pattern["reviewed"],
        "sources": pattern["references"].get("sources", []),
        "proof": status(folder, pattern),
        "proven": proven and {"date": proven["date"], "tmkb": proven["tmkb"]},
        "attacks": len(attacks.refusals) if attacks else None,
        "wrong_fixes": len(attacks.wrong) if attacks else None,
    }


def digest(folder: str, pattern: Pattern) -> Digest:
    """Return the SHA-256 of the files that the proof of ``pattern`` depends on, and that of its wrong fixes, if any."""
    names = ["pattern.yaml", *_code(pattern)]
    files = {name: _bytes(os.path.join(folder, name)) for name in names}
    files |= _stage(content for name, content in files.items() if name.endswith(".py"))
    wrong = {name: _bytes(os.path.join(folder, name)) for name in _wrong_fixes(folder, pattern)}
    stage_of_wrong = {name: content for name, content in _stage(wrong.values()).items() if name not in files}
    digests = {"sha256": _sha256(files)}
    return digests | {"wrong": _sha256(wrong | stage_of_wrong)} if wrong else digests


def read(path: str) -> tuple[Mapping[str, Proven], list[Problem]]:
    """Return the record at ``path`` by pattern id, and its problems. A record with problems counts as empty."""
    return _read(path, *textfile.version(path)) if packed.exists(path) else ({}, [])


def problems(folders: Iterable[str]) -> list[Problem]:
    """Return the problems of the records for the patterns in ``folders``."""
    return [problem for path in dict.fromkeys(map(record_path, folders)) for problem in read(path)[1]]


def record(
    runs: Mapping[str, tuple[str, Digest | None]], date: str, release: str, checked: Mapping[str, Checked] | None = None
) -> list[str]:
    """Write the records, and return their paths.

    ``runs``: id → (folder, the digests that were proven, or None). Entries whose digests are unchanged keep their date
    and release. Other patterns that still exist keep their entries. ``checked``: id → what is recorded of its idioms.
    Raises OSError.
    """
    written = []
    for path in dict.fromkeys(record_path(folder) for folder, _ in runs.values()):
        before = read(path)[0]
        entries = {id_: each for id_, each in before.items() if id_ not in runs and _exists(path, id_)}
        for id_, (folder, proven) in runs.items():
            if proven and record_path(folder) == path:
                is_same = id_ in before and proven == proof(before[id_])
                entry = before[id_] if is_same else {**proven, "date": date, "tmkb": release}
                idioms = {key: value for key, value in (checked or {}).get(id_, {}).items() if value}
                entries[id_] = {key: value for key, value in entry.items() if key not in CHECKED} | idioms
        try:
            textfile.save(path, metaschema.pointed(_yaml(entries), SCHEMA, path))
        except OSError as error:  # names a temporary file
            raise OSError(error.errno, error.strerror, path) from error
        written.append(path)
    _read.cache_clear()
    return written


def record_path(folder: str) -> str:
    """Return the file with the record of the pattern in ``folder``."""
    return os.path.join(os.path.dirname(paths.absolute(folder)), NAME)


@functools.lru_cache(maxsize=16)
def _read(path: str, _mtime: int, _size: int) -> tuple[Mapping[str, Proven], list[Problem]]:
    try:
        doc = reader.read(path, paths.shown(path))
    except DocumentError as error:
        return {}, error.problems
    problems = metaschema.check(doc, SCHEMA)
    value: Any = doc.value
    return ({}, problems) if problems else (value["patterns"], [])


def _exists(path: str, id_: str) -> bool:
    return packed.exists(os.path.join(os.path.dirname(path), folder_name(id_), "pattern.yaml"))


def _yaml(entries: Mapping[str, Proven]) -> str:
    lines = [
        f"  {id_}: {{{', '.join(f'{key}: {json.dumps(value)}' for key, value in entry.items())}}}"
        for id_, entry in sorted(entries.items())
    ]
    return "\n".join([_HEAD, *lines]) + "\n" if lines else f"{_HEAD} {{}}\n"


def _sha256(files: Mapping[str, bytes]) -> str:
    """Return the digest of the names, sizes and contents of ``files``."""
    sha256 = hashlib.sha256()
    for name, content in sorted(files.items()):
        sha256.update(f"{name}\0{len(content)}\0".encode() + content)
    return sha256.hexdigest()


def _code(pattern: Pattern) -> Iterator[str]:
    """Yield the names of the files that ``pattern.yaml`` names."""
    if code := pattern.get("code", {}):
        yield from filter(None, (code["vulnerable"], code.get("app"), code.get("attacks"), examples.proof_file(code)))
    yield from (mitigation["example"] for mitigation in pattern["mitigations"] if "example" in mitigation)


def _wrong_fixes(folder: str, pattern: Pattern) -> list[str]:
    """Return the names of the wrong fixes that attacks.yaml lists, unless their folder is not installed."""
    if "attacks" not in pattern.get("code", {}) or not attacks_file.has_wrong_fixes(folder):
        return []
    attacks, _ = attacks_file.read(folder)
    return [wrong.file for wrong in attacks.wrong.values()] if attacks else []


def _stage(sources: Iterable[bytes]) -> dict[str, bytes]:
    """Return the modules of the proofs package that ``sources`` import directly or indirectly."""
    modules: dict[str, bytes] = {}
    waiting = [name for source in sources for name in _imports(source)]
    while waiting:
        name = waiting.pop()
        path = os.path.join(paths.PROOF, *name.split("."))
        path = os.path.join(path, "__init__.py") if os.path.isdir(path) else f"{path}.py"
        key = f"{_PACKAGE}/{os.path.relpath(path, paths.PROOF)}".replace(os.sep, "/")
        if key not in modules and os.path.isfile(path):
            modules[key] = _bytes(path)
            waiting += _imports(modules[key])
    return modules


@functools.lru_cache(maxsize=64)
def _imports(source: bytes) -> tuple[str, ...]:
    """Return the modules of the proofs package that ``source`` imports, relative to it; "" is the package itself."""
    # Decoded like every file of a pattern: in bytes, a comment could declare another or an unknown encoding.
    modules: list[str] = []
    for node in _statements(ast.parse(source.decode("utf-8-sig"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            if f"{name}.".startswith(f"{_PACKAGE}."):
                modules += ("", name.removeprefix(_PACKAGE).removeprefix("."))
    return tuple(modules)


def _statements(tree: ast.Module) -> list[ast.AST]:
    """Return all statements of ``tree``, with the parts of statements that contain others; no expressions."""
    found: list[ast.AST] = [*tree.body]
    for node in found:  # grows in the loop
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            found += getattr(node, block, ())
    return found


def _bytes(path: str) -> bytes:
    return textfile.read_bytes(path, paths.shown(path))
