"""Select what a retrieval model is trained on, and find models that are damaged or older than their inputs."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tmkb.errors import Problem, SpecError
from tmkb.knowledge import questions as question_files
from tmkb.knowledge.pattern import Pattern
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import index, texts
from tmkb.schema import paths

ENOUGH = 30  # questions of a pattern that is trained
NEGATIVES = "negatives"  # the name of the questions without grades in `digests`
_DIGITS = 16  # of a digest
_LISTED = 3  # names in a problem


def selected(patterns: Sequence[Pattern], questions: Sequence[Question]) -> tuple[list[Pattern], list[Question]]:
    """Return the patterns with enough questions to learn from, and the questions without grades for the others.

    The others keep their centroids: among thousands of questions a handful would have little weight.
    """
    graded = Counter(id_ for question in questions for id_ in question.grades)
    chosen = [pattern for pattern in patterns if graded[pattern["id"]] >= ENOUGH]
    ids = {pattern["id"] for pattern in chosen}
    kept = []
    for question in questions:
        grades = {id_: grade for id_, grade in question.grades.items() if id_ in ids}
        if grades or not question.grades:
            kept.append(question._replace(grades=grades))
    return chosen, kept


def digests(questions: Iterable[Question], patterns: Iterable[Pattern]) -> dict[str, str]:
    """Return a digest of the text and the questions of each pattern, by id, and one of the negatives."""
    found: dict[str, list[object]] = {pattern["id"]: [texts.of(pattern)] for pattern in patterns}
    found[NEGATIVES] = []
    for question in questions:
        for name, grade in (question.grades or {NEGATIVES: 0}).items():
            if name in found:
                found[name].append([question.context, question.author, grade, *([True] if question.secure else [])])
    return {name: hashlib.sha256(json.dumps(found[name]).encode()).hexdigest()[:_DIGITS] for name in sorted(found)}


def damaged(folders: Iterable[str]) -> list[Problem]:
    """Return a problem for each model in ``folders`` that cannot be read or was changed after `tmkb train`."""
    problems: list[Problem] = []
    for path in _models(folders):
        try:
            if not index.read(path).is_intact():
                problems.append(index.bad_model(path, "its checksum is wrong"))
        except SpecError as error:
            problems += error.problems
    return problems


def outdated(folders: Iterable[str], patterns: Iterable[Pattern], questions: Iterable[Question]) -> list[Problem]:
    """Return a problem for each readable model in ``folders`` whose inputs have changed since it was trained.

    A folder without questions, as in a wheel, is not compared. ``patterns`` and ``questions``: those in the folders.
    """
    current = digests(questions, patterns)
    problems: list[Problem] = []
    for path in _models(folder for folder in folders if any(question_files.files(folder))):
        try:
            model = index.read(path)
        except SpecError:
            continue  # see `damaged`
        if changed := [*_changed(model.facts["inputs"], current)]:
            more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
            names = ", ".join(changed[:_LISTED]) + more
            problems.append(Problem("outdated_model", paths.shown(path), names=names, folder=index.folder_of(path)))
    return problems


def _models(folders: Iterable[str]) -> Iterator[str]:
    return filter(
        os.path.isfile, (os.path.join(folder, file) for folder in folders for file in (index.FILE, index.REVIEW_FILE))
    )


def _changed(before: Mapping[str, str], current: Mapping[str, str]) -> Iterator[str]:
    """Yield the names whose digests differ. A model can be trained on further folders, with negatives of their own."""
    is_complete = before.keys() <= current.keys()
    for name, digest in before.items():
        if name in current and digest != current[name] and (name != NEGATIVES or is_complete):
            yield name
