"""Add example questions of one author to the files beside the patterns."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable
from typing import Any

from tmkb.errors import DocumentError, SpecError
from tmkb.knowledge import questions
from tmkb.knowledge.pattern import folder_name
from tmkb.knowledge.questions import Question
from tmkb.schema import metaschema, reader, textfile
from tmkb.schema import problems as problems_


def add(lines: Iterable[str], author: str, folder: str, known: set[str]) -> tuple[int, list[str]]:
    """Add questions to the files in ``folder``.

    Args:
        lines: JSON Lines with ``context``, ``kind``, ``language`` (optional), ``relevant`` (pattern id → grade), and
            ``secure`` (optional, see `Question`).
        author: the name under which they can be held out.
        folder: a folder that contains patterns.
        known: the ids of patterns that have a folder there.

    Returns the number of added questions, and a sentence for each line that was left out.

    Raises:
        SpecError: a file in ``folder`` has problems. Then nothing is written.
        ValueError: the name of the author is not allowed.
        OSError: a file cannot be written.
    """
    if not re.fullmatch(_cells()["author"]["pattern"], author):
        raise ValueError(f"The author {author!r} is not made of lower-case letters, digits, - and _.")
    read = {path: (own, questions.read_file(path, own)) for path, own in questions.files(folder)}
    if problems := [problem for _, each in read.values() for problem in each.problems]:
        raise SpecError(problems)  # to write the files anew would lose what cannot be read
    by_file = {path: (own, each.questions) for path, (own, each) in read.items()}
    before = [question for _, each in by_file.values() for question in each]
    new: list[Question] = []
    refused: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            new.append(_question(json.loads(line), author, known))
        except ValueError as error:
            refused.append(f"line {number}: {error}")
        except DocumentError as error:
            refused.append(f"line {number}: {'; '.join(map(problems_.sentence, error.problems))}")
    twins = dict(questions.duplicates(before + new))
    changed: set[str] = set()
    for number, question in enumerate(new, len(before)):
        if number in twins:
            refused.append(f"nearly the same as another: {questions.shortened(question)}")
            continue
        own = max(question.grades, key=question.grades.__getitem__, default="")
        path = (
            os.path.join(folder, folder_name(own), questions.FILE) if own else os.path.join(folder, questions.NEGATIVES)
        )
        by_file.setdefault(path, (own, []))[1].append(question)
        changed.add(path)
    for path in sorted(changed):
        own, every = by_file[path]
        textfile.save(path, metaschema.pointed(questions.text(every, own), questions.SCHEMA, path))
    return len(new) - sum(number >= len(before) for number in twins), refused


def _question(value: Any, author: str, known: set[str]) -> Question:
    """Return the question of one line. Raises ValueError."""
    cells: Any = value if isinstance(value, dict) else {}
    context, kind, grades = cells.get("context"), cells.get("kind"), cells.get("relevant")
    if not isinstance(context, str) or not context.strip():
        raise ValueError("`context` must be a text that is not empty")
    kinds = sorted(_cells()["kind"]["enum"])
    if kind not in kinds:
        raise ValueError(f"`kind` must be one of {', '.join(kinds)}")
    if not isinstance(grades, dict) or not all(type(grade) is int and 1 <= grade <= 3 for grade in grades.values()):
        raise ValueError("`relevant` must be a map from pattern ids to the grades 1, 2 or 3")
    if unknown := sorted({*grades} - known):
        raise ValueError(f"unknown pattern {', '.join(unknown)}")
    if (kind == "negative") != (not grades):
        raise ValueError("a question of the kind negative has no grades in `relevant`, and every other has some")
    if not isinstance(secure := cells.get("secure", False), bool):
        raise ValueError("`secure` must be true or false")
    language = str(cells.get("language") or "any").lower()
    if not re.fullmatch(_cells()["language"]["pattern"], language):
        raise ValueError("`language` must be made of letters")
    question = Question(context.strip("\n"), kind, language, author, grades, secure)
    reader.parse(questions.text([question], ""), "question")  # control characters and the like
    return question


@functools.cache
def _cells() -> dict[str, Any]:
    """Return the schema of each key of a question."""
    schema: Any = reader.read(questions.SCHEMA).mapping()
    cells: dict[str, Any] = schema["properties"]["questions"]["items"]["properties"]
    return cells
