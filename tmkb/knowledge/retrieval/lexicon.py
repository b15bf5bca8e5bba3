"""What a reviewer knows about words, read from ``patterns/_lexicon/`` and compiled for search.

Four files: concepts (words that mean the same), cues (what speaks for which pattern), scope (what speaks for answering
at all) and code (what in a program says nothing, and shapes that say much). How they add up is in `index.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge.retrieval import words
from tmkb.schema import metaschema, paths, reader
from tmkb.schema.values import JsonObject

FOLDER = "_lexicon"
KINDS = ("concepts", "cues", "scope", "code")

_CONCEPT = re.compile(r"[A-Z][A-Z0-9]*")


class Lexicon:
    """The values of the files by kind, and what is wrong with them. A file with problems counts as empty."""

    def __init__(self) -> None:
        self.values: dict[str, JsonObject] = {kind: {} for kind in KINDS}
        self.problems: list[Problem] = []


def packaged() -> str:
    """The folder of the lexicon that comes with the patterns."""
    return os.path.join(paths.PATTERNS, FOLDER)


def read(folder: str | None = None) -> Lexicon:
    """Read the files of ``folder``, or the packaged ones, and hold them against their schemas and each other."""
    found = Lexicon()
    for kind in KINDS:
        path = os.path.join(folder or packaged(), f"{kind}.yaml")
        try:
            doc = reader.read(path, paths.shown(path))
        except DocumentError as error:
            found.problems += error.problems
            continue
        problems = metaschema.check(doc, os.path.join(paths.SCHEMAS, "meta", f"{kind}.yaml"))
        problems = problems or _names(doc, kind, found.values)
        found.problems += problems
        if not problems:
            found.values[kind] = doc.mapping()
    return found


class Compiled:
    """Numbers for everything that can be found in a question, and where to look it up; JSON but for its methods."""

    def __init__(self, values: dict[str, JsonObject]) -> None:
        concepts: Any = values["concepts"].get("concepts", {})
        self.names: list[str] = []
        self.phrases: dict[str, list[Any]] = {}
        self.marks: dict[str, list[int]] = {}
        self.shapes: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        for name, terms in concepts.items():
            number = self._number(name)
            for term in terms:
                self._look_for(term, number)

    def feature(self, term: str) -> int:
        """The number of ``term``, which is looked for from now on."""
        known = term in self._numbers
        number = self._number(term)
        if not known:
            self._look_for(term, number)
        return number

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def _look_for(self, term: str, number: int) -> None:
        if term.startswith("#"):
            self.shapes.setdefault(term[1:], self._number(term))
            if number != self._numbers[term]:
                self.marks.setdefault(term, []).append(number)
        elif words.is_mark(term):
            self.marks.setdefault(term.lower(), []).append(number)
        elif stems := words.words(term):
            self._add_phrase(stems[0], stems[1:], number)

    def _add_phrase(self, first: str, rest: list[str], number: int) -> None:
        found = self.phrases.setdefault(first, [])
        for known, numbers in found:
            if known == rest:
                if number not in numbers:
                    numbers.append(number)
                return
        found.append([rest, [number]])


def parts(cue: str) -> list[str]:
    """The terms that a cue asks for."""
    return cue.split(" + ")


def review(folder: str | None = None) -> list[Problem]:
    """Everything that is wrong with the lexicon in ``folder``, also what search can do without."""
    found = read(folder)
    if found.problems:
        return found.problems
    shapes: Any = found.values["code"]["shapes"]
    path = os.path.join(folder or packaged(), "cues.yaml")
    doc = reader.read(path, paths.shown(path))
    cues: Any = doc.mapping()["patterns"]
    return [
        doc.key_problem(
            "unknown_concept", ("patterns", id_, cue), kind="shape", name=term, **metaschema.near(term, names)
        )
        for names in [[f"#{name}" for name in shapes]]
        for id_ in cues
        for cue in cues[id_]
        for term in parts(cue)
        if term.startswith("#") and term not in names
    ]


def _names(doc: reader.Document, kind: str, read: dict[str, JsonObject]) -> list[Problem]:
    """Concepts that are named and do not exist, and expressions that are none."""
    concepts: Any = read["concepts"].get("concepts", {})
    value: Any = doc.value
    named: list[tuple[reader.Path, str]] = []
    if kind == "cues":
        cues = [(id_, cue) for id_, weights in value["patterns"].items() for cue in weights]
        named = [(("patterns", id_, cue), term) for id_, cue in cues for term in parts(cue)]
    if kind == "scope":
        groups = [(at, group["terms"]) for at, group in enumerate(value["inside"])]
        named = [(("inside", at, "terms", n), term) for at, terms in groups for n, term in enumerate(terms)]
    problems = [problem for path, term in named for problem in _unknown(doc, path, term, concepts)]
    return problems + (list(_expressions(doc, value["shapes"])) if kind == "code" else [])


def _expressions(doc: reader.Document, shapes: Any) -> Iterator[Problem]:
    for name, shape in shapes.items():
        try:
            re.compile(shape["regex"])
        except (re.error, RecursionError, OverflowError) as error:
            yield doc.problem("bad_expression", ("shapes", name, "regex"), reason=str(error))


def _unknown(doc: reader.Document, path: reader.Path, term: str, concepts: Any) -> list[Problem]:
    if not _CONCEPT.fullmatch(term) or term in concepts:
        return []
    return [doc.key_problem("unknown_concept", path, kind="concept", name=term, **metaschema.near(term, concepts))]
