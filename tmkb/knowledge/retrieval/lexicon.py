"""Read the lexicon, a reviewer's knowledge about words in ``patterns/_lexicon/``, and compile it for search.

It has four files: concepts (words with the same meaning), cues (evidence for each pattern), scope (evidence for
answering at all) and code (boilerplate to ignore, and expressions for common shapes). `index.py` adds up the weights.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge.retrieval import words
from tmkb.schema import metaschema, paths, reader
from tmkb.schema.values import JsonObject

FOLDER = "_lexicon"
KINDS = ("concepts", "cues", "scope", "code")

_CONCEPT = re.compile(r"[A-Z][A-Z0-9]*")


@dataclass(slots=True)
class Lexicon:
    """The values of the files by kind, and their problems. A file with problems counts as empty."""

    values: dict[str, JsonObject] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    problems: list[Problem] = field(default_factory=list)


def packaged() -> str:
    """Return the folder of the packaged lexicon."""
    return os.path.join(paths.PATTERNS, FOLDER)


def read(folder: str | None = None) -> Lexicon:
    """Read and check the files of ``folder``, by default of the packaged lexicon."""
    lexicon = Lexicon()
    for kind in KINDS:
        try:
            doc = _document(folder, kind)
        except DocumentError as error:
            lexicon.problems += error.problems
            continue
        problems = metaschema.check(doc, os.path.join(paths.SCHEMAS, "meta", f"{kind}.yaml"))
        problems = problems or list(_references(doc, kind, lexicon.values))
        lexicon.problems += problems
        if not problems:
            lexicon.values[kind] = doc.mapping()
    return lexicon


def review(folder: str | None = None) -> list[Problem]:
    """Return all problems of the lexicon in ``folder``, including unknown shapes, which search ignores."""
    lexicon = read(folder)
    if lexicon.problems:
        return lexicon.problems
    shapes: Any = lexicon.values["code"]["shapes"]
    doc, names = _document(folder, "cues"), [f"#{name}" for name in shapes]
    return [
        doc.key_problem("unknown_concept", path, kind="shape", name=term, **metaschema.near(term, names))
        for path, term in _terms(doc.value, "cues")
        if term.startswith("#") and term not in names
    ]


def parts(cue: str) -> list[str]:
    """Split a cue into the terms that it combines."""
    return cue.split(" + ")


def _document(folder: str | None, kind: str) -> reader.Document:
    path = os.path.join(folder or packaged(), f"{kind}.yaml")
    return reader.read(path, paths.shown(path))


def _terms(value: Any, kind: str) -> Iterator[tuple[reader.Path, str]]:
    """Yield the terms in a file that can be concepts or shapes, each with its path."""
    if kind == "cues":
        for id_, weights in value["patterns"].items():
            yield from ((("patterns", id_, cue), term) for cue in weights for term in parts(cue))
    elif kind == "scope":
        for at, group in enumerate(value["inside"]):
            yield from ((("inside", at, "terms", number), term) for number, term in enumerate(group["terms"]))


def _references(doc: reader.Document, kind: str, values: dict[str, JsonObject]) -> Iterator[Problem]:
    """Report unknown concepts and invalid regular expressions."""
    concepts: Any = values["concepts"].get("concepts", {})
    value: Any = doc.value
    for path, term in _terms(value, kind):
        if _CONCEPT.fullmatch(term) and term not in concepts:
            near = metaschema.near(term, concepts)
            yield doc.key_problem("unknown_concept", path, kind="concept", name=term, **near)
    for name, shape in value["shapes"].items() if kind == "code" else ():
        try:
            re.compile(shape["regex"])
        except (re.error, RecursionError, OverflowError) as error:
            yield doc.problem("bad_expression", ("shapes", name, "regex"), reason=str(error))


class Compiler:
    """Numbers all features (concepts, terms, marks and shapes), and builds the tables that find them in a question."""

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
                self._add(term, number)

    def feature(self, term: str) -> int:
        """Return the number of ``term``, and add it to the tables if it is new."""
        is_known = term in self._numbers
        number = self._number(term)
        if not is_known:
            self._add(term, number)
        return number

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def _add(self, term: str, number: int) -> None:
        if term.startswith("#"):
            self.shapes.setdefault(term[1:], self._number(term))
            if number != self._numbers[term]:
                self.marks.setdefault(term, []).append(number)
        elif words.is_mark(term):
            self.marks.setdefault(term.lower(), []).append(number)
        elif stems := words.words(term):
            self._add_phrase(stems[0], stems[1:], number)

    def _add_phrase(self, first: str, rest: list[str], number: int) -> None:
        phrases = self.phrases.setdefault(first, [])
        numbers = next((numbers for other, numbers in phrases if other == rest), None)
        if numbers is None:
            phrases.append([rest, [number]])
        elif number not in numbers:
            numbers.append(number)
