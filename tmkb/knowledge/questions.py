"""Read and check the example questions of patterns, from which retrieval learns.

``<pattern>/questions.yaml`` contains the questions of one pattern. ``_questions/negatives.yaml`` beside the patterns
contains questions that no pattern answers.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge.retrieval import words
from tmkb.schema import metaschema, paths, reader

FILE = "questions.yaml"
NEGATIVES = os.path.join("_questions", "negatives.yaml")
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "questions.yaml")
SIMILAR = 0.8  # Jaccard index of words and pairs of words from which two questions are duplicates
_HEAD = "kind: questions\nquestions:"


class Question(NamedTuple):
    """A question and the grades of patterns (3: the topic, 2: to be shown, 1: useful). Without grades: a negative.

    `secure`: whether its code is right, so that a review has nothing to say about it. Without grades it is an example
    for reviews only: a query before the code was written may have had an answer.
    """

    context: str
    kind: str
    language: str
    author: str
    grades: dict[str, int]
    secure: bool = False

    @property
    def is_query(self) -> bool:
        """Whether it is an example of a query."""
        return bool(self.grades) or not self.secure


@dataclass(slots=True)
class Questions:
    """Questions with the problems of their files. A file with problems counts as empty."""

    questions: list[Question] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def extend(self, folders: Iterable[str]) -> None:
        """Add the questions in ``folders``: folders of a pattern, or folders that contain patterns."""
        for folder in folders:
            for path, own in files(folder):
                each = read_file(path, own)
                self.questions += each.questions
                self.problems += each.problems

    def contexts(self) -> dict[str, list[str]]:
        """Return the contexts of the questions about each pattern."""
        found: dict[str, list[str]] = {}
        for question in self.questions:
            for id_, grade in question.grades.items():
                if grade == max(question.grades.values()):
                    found.setdefault(id_, []).append(question.context)
        return found


def read(folders: Iterable[str]) -> Questions:
    """Read the questions in ``folders``. See `Questions.extend`."""
    found = Questions()
    found.extend(folders)
    return found


def files(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files of questions in ``folder``, each with the id of its pattern, or "" for negatives."""
    if os.path.isfile(os.path.join(folder, "pattern.yaml")):
        if os.path.isfile(path := os.path.join(folder, FILE)):
            yield path, pattern_id(folder)
        return
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not name.startswith("_") and os.path.isfile(path := os.path.join(folder, name, FILE)):
            yield path, pattern_id(name)
    if os.path.isfile(path := os.path.join(folder, NEGATIVES)):
        yield path, ""


def pattern_id(folder: str) -> str:
    """Return the id of the pattern in ``folder``, which is named like it."""
    return os.path.basename(folder).upper().replace("_", "-")


def read_file(path: str, own: str) -> Questions:
    """Read one file. ``own``: the pattern of questions without grades."""
    try:
        doc = reader.read(path, paths.shown(path))
    except DocumentError as error:
        return Questions(problems=error.problems)
    if problems := metaschema.check(doc, SCHEMA):
        return Questions(problems=problems)
    value: Any = doc.value
    unsuitable = [
        doc.problem("question_elsewhere", ("questions", at), ids=", ".join(each["grades"]) or "none", own=own or "none")
        for at, each in enumerate(value["questions"])
        if "grades" in each and own not in (each["grades"] or [""])
    ]
    return Questions([_question(each, own) for each in value["questions"]], unsuitable)


def _question(value: Mapping[str, Any], own: str) -> Question:
    grades = value.get("grades", {own: 3} if own else {})
    cells = (value["context"], value["kind"], value.get("language", "any"), value["author"])
    return Question(*cells, dict(grades), value.get("secure", False))


def by_file(folders: Iterable[str]) -> dict[str, Questions]:
    """Read the questions in ``folders``, by the path of their file."""
    return {path: read_file(path, own) for folder in folders for path, own in files(folder)}


def review(by_file: Mapping[str, Questions], known: Collection[str]) -> list[Problem]:
    """Return the problems of files with questions, with unknown patterns and questions that are nearly the same."""
    problems = [problem for each in by_file.values() for problem in each.problems]
    seen = [(question, paths.shown(path)) for path, each in by_file.items() for question in each.questions]
    for question, path in seen:
        for id_ in question.grades.keys() - {*known}:
            problems.append(Problem("unknown_grade", path, id=id_, question=shortened(question)))
    for second, first in duplicates([question for question, _ in seen]):
        question, path = seen[second]
        other, elsewhere = seen[first]
        fields = {"question": shortened(question), "other": shortened(other), "elsewhere": elsewhere}
        problems.append(Problem("duplicate_question", path, **fields))
    return problems


def shortened(question: Question) -> str:
    """Return the beginning of ``question`` in one line."""
    text = " ".join(question.context.split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def duplicates(questions: Iterable[Question]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of questions that are nearly the same as an earlier one, with the number of that one.

    A mistake and its correction are no duplicates of each other. Two sets with a Jaccard index of `SIMILAR` share at
    least one of the rarest members of each, so that only sets with such a member in common are compared (Bayardo, Ma
    and Srikant, Scaling Up All Pairs Similarity Search, 2007).
    """
    asked = [*questions]
    sets = [_signature(question.context) for question in asked]
    frequency = Counter(member for each in sets for member in each)
    by_member: dict[str, list[int]] = {}
    for number, members in enumerate(sets):
        ordered = sorted(members, key=lambda member: (frequency[member], member))
        rare = ordered[: len(ordered) - int(SIMILAR * len(ordered)) + 1]
        found = {other for member in rare for other in by_member.get(member, ())}
        candidates = sorted(other for other in found if asked[other].secure == asked[number].secure)
        twin = next((other for other in candidates if _jaccard(members, sets[other]) >= SIMILAR), None)
        if twin is not None:
            yield number, twin
        for member in rare:
            by_member.setdefault(member, []).append(number)


def _signature(context: str) -> set[str]:
    stems = words.words(context)
    return {*stems, *map("%s %s".__mod__, pairwise(stems))} or {context}


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def text(questions: Iterable[Question], own: str) -> str:
    """Return the content of a file for ``questions``; grades are left out where they are those of ``own`` alone."""
    lines = [_line(question, own) for question in questions]
    return "\n".join([_HEAD, *lines]) + "\n" if lines else f"{_HEAD} []\n"


def _line(question: Question, own: str) -> str:
    cells = {"context": question.context, "kind": question.kind, "language": question.language}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in cells.items() if value != "any"]
    lines.append(f"author: {question.author}")
    if question.grades != ({own: 3} if own else {}):
        lines.append(f"grades: {{{', '.join(f'{id_}: {grade}' for id_, grade in question.grades.items())}}}")
    if question.secure:
        lines.append("secure: true")
    return f"  - {{{', '.join(lines)}}}"
