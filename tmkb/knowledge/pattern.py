"""One pattern: its file, the code beside it, and what makes it one that can be served."""

from __future__ import annotations

import ast
import os
from itertools import islice
from typing import Any, NotRequired, TypedDict, cast

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples
from tmkb.knowledge.attacks import Attacks
from tmkb.schema import hidden, metaschema, paths, reader, textfile
from tmkb.schema.reader import Document

SCHEMA = os.path.join(paths.SCHEMAS, "meta", "pattern.yaml")
_HIDDEN_LINES = 20  # lines of one file that are reported for a hidden character
VALUES = 1000  # in one file, because values are compared with each other; our largest has 138


class Mitigation(TypedDict):
    """A way to mend it; ``secure`` is the shown part of its example."""

    id: str
    name: str
    description: str
    effectiveness: str
    implementation_effort: str
    tradeoffs: NotRequired[list[str]]
    example: NotRequired[str]
    leaves: NotRequired[list[str]]
    unproven: NotRequired[list[dict[str, str]]]
    secure: NotRequired[str]


class Pattern(TypedDict):
    """A pattern as it is served: the keys of its file, and what is shown of the code beside it."""

    id: str
    name: str
    version: str
    reviewed: str
    tier: str
    category: str
    subcategory: NotRequired[str]
    language: str
    framework: str
    severity: str
    likelihood: str
    generalizes_to: NotRequired[list[str]]
    triggers: dict[str, list[str]]
    agent_summary: dict[str, str]
    description: str
    blind_spots: NotRequired[list[str]]
    attack_scenario: dict[str, Any]
    mitigations: list[Mitigation]
    principles: NotRequired[list[str]]
    testing: NotRequired[list[str]]
    related_patterns: NotRequired[list[dict[str, Any]]]
    references: dict[str, list[str]]
    code: NotRequired[dict[str, str]]
    vulnerable: NotRequired[str]
    template: NotRequired[str]
    steps: list[str]


class Found:
    """What a folder holds: the pattern, if it can be served, and everything that is wrong with it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.document: Document | None = None
        self.pattern: Pattern | None = None

    @property
    def file(self) -> str:
        """The pattern's own file, as problems call it."""
        return paths.shown(os.path.join(self.folder, "pattern.yaml"))


def folder_name(id_: str) -> str:
    """How the folder of a pattern is called."""
    return id_.lower().replace("-", "_")


def read(folder: str) -> Found:
    """Read the pattern in ``folder``. Its code is read as text; nothing of it is run."""
    found = Found(folder)
    try:
        text = textfile.read(os.path.join(folder, "pattern.yaml"), found.file)
        doc = reader.parse(text, found.file, VALUES)
    except DocumentError as error:
        found.problems = error.problems
        return found
    found.problems = _shape(doc) or _hidden(doc, text)
    if not found.problems:
        pattern = cast(Pattern, doc.mapping() | {"steps": []})
        if "code" in pattern:
            _add_code(found, doc, pattern)
        if not found.problems:
            found.document, found.pattern = doc, pattern
    return found


def parse(text: str, file: str) -> tuple[Document, list[Problem]]:
    """The ``text`` of a pattern, which problems call ``file``, and what is wrong with it as far as it tells without the
    files beside it."""
    try:
        doc = reader.parse(text, file, VALUES)
    except DocumentError as error:
        return Document(file, {}, {}, {}), error.problems
    return doc, _shape(doc) or _hidden(doc, text) or _mitigations(doc, cast(Pattern, doc.value))


def _shape(doc: Document) -> list[Problem]:
    """What is wrong with the form of the file."""
    return metaschema.check(doc, SCHEMA)


def _hidden(doc: Document, text: str) -> list[Problem]:
    """Return a problem for each line of ``text`` with a hidden character; else for each value that escapes one."""
    found = _hidden_lines(doc.file, text)
    if found:
        return found
    for path, place in doc.values.items():
        value: Any = doc.mapping()
        for step in path:
            value = value[step]
        if isinstance(value, str) and (character := hidden.find(value)):
            found.append(_hidden_problem(doc.file, place.line, place.column, character))
    return found


def _hidden_lines(file: str, text: str) -> list[Problem]:
    """Return a problem for each of the first lines of ``text`` with a hidden character; the last counts the others."""
    places = hidden.places(text)
    problems = [_hidden_problem(file, *place) for place in islice(places, _HIDDEN_LINES)]
    if first := next(places, None):
        problems.append(Problem("more_hidden_characters", file, *first[:2], count=1 + sum(1 for _ in places)))
    return problems


def _hidden_problem(file: str, line: int, column: int, character: str) -> Problem:
    return Problem("hidden_character", file, line, column, character=hidden.describe(character))


def _mitigations(doc: Document, pattern: Pattern) -> list[Problem]:
    """What is wrong with the mitigations of a pattern that shows code."""
    shown = [index for index, mitigation in enumerate(pattern["mitigations"]) if "example" in mitigation]
    if "code" not in pattern:
        return []
    if not shown:
        return [doc.key_problem("no_secure_example", ("mitigations",))]
    left = pattern["mitigations"][shown[0]].get("leaves", [])
    return [
        doc.problem("first_mitigation_leaves", ("mitigations", shown[0], "leaves", at)) for at, _ in enumerate(left)
    ]


def _add_code(found: Found, doc: Document, pattern: Pattern) -> None:
    """Put what is shown of the files beside the pattern into it."""
    code = pattern.get("code", {})
    shown = [m for m in pattern["mitigations"] if "example" in m]
    found.problems += _mitigations(doc, pattern)
    sources = _Sources(found, doc)
    if vulnerable := sources.read(("code", "vulnerable"), code["vulnerable"]):
        pattern["vulnerable"] = sources.region(vulnerable, "example")
    for index, mitigation in enumerate(pattern["mitigations"]):
        if "example" not in mitigation:
            continue
        if secure := sources.read(("mitigations", index, "example"), mitigation["example"]):
            mitigation["secure"] = sources.region(secure, "example")
            if mitigation is shown[0]:
                pattern["template"] = sources.region(secure, "template")
    if name := code.get("app"):
        sources.read(("code", "app"), name)
    attacks = _attacks(found) if "attacks" in code else None
    for wrong in attacks.wrong.values() if attacks else ():
        sources.read(("code", "attacks"), wrong.file)
    proof = sources.read(("code", "proof"), name) if (name := examples.proof_file(code)) else None
    if proof or attacks:
        _add_steps(found, doc, pattern, proof, attacks)


def _attacks(found: Found) -> Attacks | None:
    attacks, problems = attacks_file.read(found.folder)
    found.problems += problems
    return attacks


def _add_steps(
    found: Found, doc: Document, pattern: Pattern, proof: examples.Source | None, attacks: Attacks | None
) -> None:
    exploits = _exploits(found, proof) if proof else {}
    stories = attacks.stories if attacks else []
    pattern["steps"] = [*stories, *(" ".join(text.split()) for text in exploits.values())]
    if proof and (not all(exploits.values()) or not pattern["steps"]):
        found.problems.append(Problem("no_exploit", proof.shown))
    names = [*(attacks.refusals if attacks else []), *exploits]
    first = next((index for index, mitigation in enumerate(pattern["mitigations"]) if "example" in mitigation), None)
    for index, mitigation in enumerate(pattern["mitigations"]):
        for at, name in enumerate(mitigation.get("leaves", []) if index != first else []):
            if name not in names:
                path = ("mitigations", index, "leaves", at)
                found.problems.append(doc.problem("unknown_exploit", path, name=name, **metaschema.near(name, names)))


def _exploits(found: Found, proof: examples.Source) -> dict[str, str]:
    tree = examples.parsed(proof, [])  # its problems are known
    for function in examples.exploit_functions(tree):  # an escape in a docstring becomes a character of a step
        if character := hidden.find(ast.get_docstring(function) or ""):
            found.problems.append(_hidden_problem(proof.shown, function.body[0].lineno, 1, character))
    return examples.exploits(tree)


class _Sources:
    """The files beside a pattern: each is read once, however often the pattern names it."""

    def __init__(self, found: Found, doc: Document) -> None:
        self.found = found
        self.doc = doc
        self.files: dict[str, examples.Source | None] = {}
        self.regions: dict[tuple[str, str], str] = {}

    def read(self, path: reader.Path, name: str) -> examples.Source | None:
        """Return the file ``name`` that the pattern names at ``path``; None, and a problem, where it cannot be read."""
        if name in self.files:
            return self.files[name]
        source = None
        try:
            shown = paths.shown(os.path.join(self.found.folder, name))
            source = examples.source(self.found.folder, name, shown)
        except DocumentError as error:
            self.found.problems += error.problems
        else:
            if source is None:
                self.found.problems.append(self.doc.problem("no_example", path, name=name))
                return None  # not kept: each place that names it is reported
            self.found.problems += _hidden_lines(source.shown, source.text)
            examples.parsed(source, self.found.problems)
        self.files[name] = source
        return source

    def region(self, source: examples.Source, name: str) -> str:
        """Return the region ``name`` of ``source``; where it is not there exactly once, note that."""
        if (source.shown, name) not in self.regions:
            self.regions[source.shown, name] = examples.region(source, name, self.found.problems)
        return self.regions[source.shown, name]
