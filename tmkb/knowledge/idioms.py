"""Read idioms.yaml: the fix of a pattern in the idiom of other stacks than that of its own code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import attacks, examples, provenance, stacks
from tmkb.knowledge.pattern import Pattern, hidden_characters, hidden_lines
from tmkb.schema import metaschema, packed, paths, reader, textfile
from tmkb.schema.reader import Document

NAME = "idioms.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "idioms.yaml")
MAX_LINES = 8  # of code, without those that only close something
MAX_CHARACTERS = 460
HOUSE = "house"  # the status of an idiom of the organization
_REGION = "idiom"
STAGE = "flask"  # the stack on whose stage the code of patterns runs


class Idiom(NamedTuple):
    """The fix of a pattern for a stack."""

    code: str
    caution: str | None
    app: str | None  # the file of the application that uses it, relative to the pattern


def read(folder: str) -> tuple[dict[str, Idiom], list[Problem]]:
    """Return the idioms of the pattern in ``folder`` by stack, and the problems of its files.

    An idiom with a problem is left out, unless it is only too long.
    """
    file = os.path.join(folder, NAME)
    if not packed.exists(file):
        return {}, []
    try:
        text = textfile.read(file, paths.shown(file))
        doc = reader.parse(text, paths.shown(file))
    except DocumentError as error:
        return {}, error.problems
    if problems := metaschema.check(doc, SCHEMA) or hidden_characters(doc, text):
        return {}, problems
    idioms: dict[str, Idiom] = {}
    for stack in doc.section("stacks"):
        idiom, found = _idiom(folder, doc, stack)
        problems += [*found, *sizes(doc, ("stacks", stack), stack, idiom.code)]
        if not found:
            idioms[stack] = idiom
    return idioms, problems


def _idiom(folder: str, doc: Document, stack: str) -> tuple[Idiom, list[Problem]]:
    """Return the idiom for ``stack``, and its problems."""
    value: dict[str, str] = doc.section("stacks")[stack]
    path = ("stacks", stack)
    problems: list[Problem] = []
    code, app = value.get("code", ""), value.get("app")
    if app is not None:
        code = _region(folder, app, problems) or code
        if not code and not problems:
            problems.append(doc.problem("no_app", (*path, "app"), name=app))
    known = stacks.packaged().stacks
    if stack not in known:
        problems.append(doc.key_problem("unknown_stack", path, name=stack, **metaschema.near(stack, known)))
    return Idiom(code, value.get("caution"), app), problems


def _region(folder: str, app: str, problems: list[Problem]) -> str:
    """Return the region `idiom` of an application; an empty text if there is no such file."""
    try:
        source = examples.read(folder, app, paths.shown(os.path.join(folder, app)))
    except DocumentError as error:
        problems += error.problems
        return ""
    if source is None:
        return ""
    problems += hidden_lines(source.file, source.text)
    if app.endswith(".py"):
        examples.parse(source, problems)
    return examples.region(source, _REGION, problems)


def sizes(doc: Document, path: reader.Path, stack: str, code: str) -> Iterator[Problem]:
    """Report code for ``stack``, which is at ``path``, if it is longer than an answer has room for."""
    place = f"The idiom for {stack}"
    lines, characters = sum(_says_something(line) for line in code.splitlines()), len(code.strip())
    if lines > MAX_LINES:
        yield doc.key_problem("too_many_lines", path, place=place, count=lines, limit=MAX_LINES)
    if characters > MAX_CHARACTERS:
        yield doc.key_problem("too_long", path, place=place, count=characters, limit=MAX_CHARACTERS)


def _says_something(line: str) -> bool:
    return line.strip() != "end" and any(character.isalnum() for character in line)


def digest(folder: str, stack: str, idiom: Idiom) -> str:
    """Return the SHA-256 of what the proof of an idiom depends on: its entry, its application, and the attacks."""
    parts = [json.dumps([stack, idiom.code, idiom.caution, idiom.app])]
    for name in filter(None, (idiom.app, attacks.NAME)):
        source = examples.read(folder, name, name)
        parts.append(source.text if source else "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compiled_digest(stack: str, idiom: Idiom) -> str:
    """Return the first 16 digits of the SHA-256 of what a parser reads of an idiom: its stack and its code."""
    return hashlib.sha256(f"{stack}\0{idiom.code}".encode()).hexdigest()[:16]


def status(folder: str, pattern: Pattern, stack: str, idiom: Idiom) -> str:
    """Return what is recorded about an idiom.

    It is proven if the attacks of the pattern were played on its application, compiled if the parser of its language
    has accepted its code, and text otherwise.
    """
    recorded = provenance.lookup(folder, pattern) or {}
    proven, compiled = (recorded.get(key, {}).get(stack) for key in provenance.CHECKED)
    if proven and proven == digest(folder, stack, idiom):
        return "proven"
    if compiled and compiled == compiled_digest(stack, idiom):
        return "compiled"
    return "text"


def own_stack(pattern: Pattern) -> str | None:
    """Return the stack of the pattern's own code; None without code that is shown."""
    if "template" not in pattern:
        return None
    return pattern["framework"] if pattern["framework"] != stacks.ANY else STAGE


def served(folder: str, pattern: Pattern, written: Mapping[str, Idiom] | None = None) -> dict[str, dict[str, str]]:
    """Return what is shown of the idioms of a pattern, by stack: code, status and, if there is one, caution.

    The stack of the pattern's own code has its template. See `status`; that of idioms of the house is `HOUSE`.

    Args:
        folder: the folder of the pattern.
        pattern: the pattern.
        written: its idioms, as `read` returns them; None reads them.
    """
    shown: dict[str, dict[str, str]] = {}
    if own := own_stack(pattern):
        proven = provenance.status(folder, pattern) == "proven"
        idiom = Idiom(pattern["template"], pattern["agent_summary"].get("caution"), None)
        shown[own] = _shown(idiom, "proven" if proven else "text")
    for stack, idiom in (read(folder)[0] if written is None else written).items():
        shown[stack] = _shown(idiom, status(folder, pattern, stack, idiom))
    for stack, each in pattern.get("house", {}).get("idioms", {}).items():
        shown[stack] = _shown(Idiom(each["code"], each.get("caution"), None), HOUSE)
    return shown


def _shown(idiom: Idiom, status: str) -> dict[str, str]:
    return {"code": idiom.code, **({"caution": idiom.caution} if idiom.caution else {}), "status": status}
