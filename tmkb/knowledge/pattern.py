"""Read and check one pattern: its file, and the code beside it."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NotRequired, TypedDict, cast

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples, tokens
from tmkb.knowledge.attacks import Attacks
from tmkb.schema import hidden, metaschema, paths, reader, textfile
from tmkb.schema.reader import Document

SCHEMA = os.path.join(paths.SCHEMAS, "meta", "pattern.yaml")
MAX_VALUES = 1000  # in one file, because values are compared with each other; the largest packaged file has 138
MAX_SUMMARY_TOKENS = 99  # three summaries and a template have to fit into an answer
MAX_TEMPLATE_CHARACTERS = 460
_MAX_HIDDEN_LINES = 20  # lines of one file that are reported for a hidden character


class Mitigation(TypedDict):
    """A way to fix the threat; ``secure`` is the region that is shown of its example."""

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
    """A pattern as it is served: the keys of its file, the regions that are shown of its code, and `house.apply`."""

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
    house: NotRequired[dict[str, Any]]


@dataclass(slots=True)
class PatternFolder:
    """A folder with a pattern. `pattern` and `document` are None unless the pattern can be served."""

    path: str
    problems: list[Problem] = field(default_factory=list)
    document: Document | None = None
    pattern: Pattern | None = None

    @property
    def file(self) -> str:
        """The path of pattern.yaml as problems show it."""
        return paths.shown(os.path.join(self.path, "pattern.yaml"))


def folder_name(id_: str) -> str:
    """Return the name that the folder of a pattern must have."""
    return id_.lower().replace("-", "_")


def read(path: str) -> PatternFolder:
    """Read the pattern in the folder ``path``. Its code is read as text and never run."""
    folder = PatternFolder(path)
    try:
        text = textfile.read(os.path.join(path, "pattern.yaml"), folder.file)
        doc = reader.parse(text, folder.file, MAX_VALUES)
    except DocumentError as error:
        folder.problems = error.problems
        return folder
    folder.problems = metaschema.check(doc, SCHEMA) or hidden_characters(doc, text)
    if not folder.problems:
        pattern = cast(Pattern, doc.mapping() | {"steps": []})
        if "code" in pattern:
            _add_code(folder, doc, pattern)
        if not folder.problems:
            folder.document, folder.pattern = doc, pattern
    return folder


def review(folder: PatternFolder, known: Collection[str]) -> Iterator[Problem]:
    """Check the folder name, the sizes and the related patterns of a pattern that can be served.

    ``known`` are the ids that may be related patterns.
    """
    doc, pattern = folder.document, folder.pattern
    if doc is None or pattern is None:
        return
    name, expected = os.path.basename(os.path.abspath(folder.path)), folder_name(pattern["id"])
    if name != expected:
        yield doc.problem("folder_name", ("id",), id=pattern["id"], expected=expected, actual=name)
    yield from _sizes_and_relations(doc, pattern, known)


def check_text(text: str, file: str, known: Collection[str]) -> list[Problem]:
    """Check the ``text`` of a pattern, which problems call ``file``, without the files beside it."""
    try:
        doc = reader.parse(text, file, MAX_VALUES)
    except DocumentError as error:
        return error.problems
    problems = metaschema.check(doc, SCHEMA) or hidden_characters(doc, text)
    pattern = cast(Pattern, doc.value)
    return problems or _mitigations(doc, pattern) or list(_sizes_and_relations(doc, pattern, known))


def _sizes_and_relations(doc: Document, pattern: Pattern, known: Collection[str]) -> Iterator[Problem]:
    answered = (text for key, text in pattern["agent_summary"].items() if key != "principle")
    size, limit = tokens.count(" ".join(answered)), MAX_SUMMARY_TOKENS
    if size > limit:
        yield doc.key_problem("too_many_tokens", ("agent_summary",), place="agent_summary", count=size, limit=limit)
    size, limit = len(pattern.get("template", "")), MAX_TEMPLATE_CHARACTERS
    if size > limit:
        place = f"the region template of {pattern['mitigations'][_examples(pattern)[0]]['example']}"
        yield doc.key_problem("too_long", ("mitigations",), place=place, count=size, limit=limit)
    for index, other in enumerate(pattern.get("related_patterns", [])):
        if other["id"] not in known:
            path = ("related_patterns", index, "id")
            yield doc.problem("unknown_pattern", path, name=other["id"], **metaschema.near(other["id"], known))


def hidden_characters(doc: Document, text: str) -> list[Problem]:
    """Report each line of ``text`` with a hidden character; without any, each value with an escaped one."""
    problems = hidden_lines(doc.file, text)
    if problems:
        return problems
    for path, place in doc.values.items():
        value = reader.at(doc.value, path)
        if isinstance(value, str) and (character := hidden.find(value)):
            problems.append(_hidden_character(doc.file, place.line, place.column, character))
    return problems


def hidden_lines(file: str, text: str) -> list[Problem]:
    """Report the first lines of ``text`` with a hidden character, and the number of the others."""
    places = hidden.places(text)
    problems = [_hidden_character(file, *place) for place in islice(places, _MAX_HIDDEN_LINES)]
    if first := next(places, None):
        problems.append(Problem("more_hidden_characters", file, *first[:2], count=1 + sum(1 for _ in places)))
    return problems


def _hidden_character(file: str, line: int, column: int, character: str) -> Problem:
    return Problem("hidden_character", file, line, column, character=hidden.describe(character))


def _examples(pattern: Pattern) -> list[int]:
    """Return the indexes of the mitigations with an example."""
    return [index for index, mitigation in enumerate(pattern["mitigations"]) if "example" in mitigation]


def _mitigations(doc: Document, pattern: Pattern) -> list[Problem]:
    if "code" not in pattern:
        return []
    if not (indexes := _examples(pattern)):
        return [doc.key_problem("no_secure_example", ("mitigations",))]
    leaves = ("mitigations", indexes[0], "leaves")
    exploits = pattern["mitigations"][indexes[0]].get("leaves", [])
    return [doc.problem("first_mitigation_leaves", (*leaves, at)) for at, _ in enumerate(exploits)]


def _add_code(folder: PatternFolder, doc: Document, pattern: Pattern) -> None:
    """Add the shown regions and the steps of the proof to ``pattern``."""
    code = pattern.get("code", {})
    folder.problems += _mitigations(doc, pattern)
    files = _Files(folder, doc)
    if vulnerable := files.read(("code", "vulnerable"), code["vulnerable"]):
        pattern["vulnerable"] = files.region(vulnerable, "example")
    indexes = _examples(pattern)
    for index in indexes:
        mitigation = pattern["mitigations"][index]
        if secure := files.read(("mitigations", index, "example"), mitigation["example"]):
            mitigation["secure"] = files.region(secure, "example")
            if index == indexes[0]:
                pattern["template"] = files.region(secure, "template")
    if app := code.get("app"):
        files.read(("code", "app"), app)
    attacks, problems = attacks_file.read(folder.path) if "attacks" in code else (None, [])
    folder.problems += problems
    for wrong in attacks.wrong.values() if attacks and attacks_file.has_wrong_fixes(folder.path) else ():
        files.read(("code", "attacks"), wrong.file)
    name = examples.proof_file(code)
    proof = files.read(("code", "proof"), name) if name else None
    steps = _proof_steps(folder, proof)
    if proof and not attacks and not steps:
        folder.problems.append(Problem("no_exploit", proof.file))
    if attacks or proof:
        _add_steps(folder, doc, pattern, attacks, steps)


def _proof_steps(folder: PatternFolder, proof: examples.Source | None) -> dict[str, str]:
    """Return the docstring of each exploit of ``proof``."""
    if proof is None:
        return {}
    exploits = examples.exploits(examples.parse(proof, []))  # `_Files.read` has reported its problems
    docstrings = {name: ast.get_docstring(function) or "" for name, function in exploits.items()}
    for name, text in docstrings.items():  # an escape in a docstring becomes a character of a step
        if character := hidden.find(text):
            folder.problems.append(_hidden_character(proof.file, exploits[name].body[0].lineno, 1, character))
    if not all(docstrings.values()):
        folder.problems.append(Problem("no_exploit", proof.file))
    return docstrings


def _add_steps(
    folder: PatternFolder, doc: Document, pattern: Pattern, attacks: Attacks | None, steps: dict[str, str]
) -> None:
    pattern["steps"] = [*(attacks.stories if attacks else []), *(" ".join(text.split()) for text in steps.values())]
    names = [*(attacks.refusals if attacks else []), *steps]
    first = next(iter(_examples(pattern)), None)
    for index, mitigation in enumerate(pattern["mitigations"]):
        for at, name in enumerate(mitigation.get("leaves", []) if index != first else []):
            if name not in names:
                path, near = ("mitigations", index, "leaves", at), metaschema.near(name, names)
                folder.problems.append(doc.problem("unknown_exploit", path, name=name, **near))


class _Files:
    """The code beside a pattern. Each file is read once, also if the pattern names it repeatedly."""

    def __init__(self, folder: PatternFolder, doc: Document) -> None:
        self.folder = folder
        self.doc = doc
        self.sources: dict[str, examples.Source | None] = {}
        self.regions: dict[tuple[str, str], str] = {}

    def read(self, path: reader.Path, name: str) -> examples.Source | None:
        """Return the file ``name``, which the pattern names at ``path``; None, and a problem, if it is unreadable."""
        if name in self.sources:
            return self.sources[name]
        source, problems = None, self.folder.problems
        try:
            source = examples.read(self.folder.path, name, paths.shown(os.path.join(self.folder.path, name)))
        except DocumentError as error:
            problems += error.problems
        else:
            if source is None:
                problems.append(self.doc.problem("no_example", path, name=name))
                return None  # not cached, so that each place that names the file is reported
            problems += hidden_lines(source.file, source.text)
            examples.parse(source, problems)
        self.sources[name] = source
        return source

    def region(self, source: examples.Source, name: str) -> str:
        """Return the region ``name`` of ``source``, and report a problem unless it occurs exactly once."""
        if (source.file, name) not in self.regions:
            self.regions[source.file, name] = examples.region(source, name, self.folder.problems)
        return self.regions[source.file, name]
