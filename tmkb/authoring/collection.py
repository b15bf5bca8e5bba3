"""Add example questions of one author to the files beside the patterns."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tmkb.knowledge import questions
from tmkb.knowledge.pattern import folder_name
from tmkb.knowledge.questions import Question
from tmkb.schema import metaschema, reader

KINDS = frozenset(
    ("agent", "plan", "diff", "stub", "path", "task", "commit", "code", "paraphrase", "noisy", "incident", "direct")
) | {"multi", "negative"}
_LANGUAGE = re.compile("[a-z]+")


def add(lines: Iterable[str], author: str, folder: str, known: set[str]) -> tuple[int, list[str]]:
    """Add questions to the files in ``folder``.

    Args:
        lines: JSON Lines with ``context``, ``kind``, ``language`` (optional) and ``relevant`` (pattern id → grade).
        author: the name under which they can be held out.
        folder: a folder that contains patterns.
        known: the ids of patterns that have a folder there.

    Returns the number of added questions, and a sentence for each line that was left out.
    """
    by_file = {path: (own, questions.read_file(path, own).questions) for path, own in questions.files(folder)}
    before = [question for _, each in by_file.values() for question in each]
    new: list[Question] = []
    refused: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            new.append(_question(json.loads(line), author, known))
        except (KeyError, TypeError, ValueError) as error:
            refused.append(f"line {number}: {error}")
    twins = dict(questions.duplicates(before + new))
    for number, question in enumerate(new, len(before)):
        if number in twins:
            refused.append(f"nearly the same as another: {questions.shortened(question)}")
            continue
        own = max(question.grades, key=question.grades.__getitem__, default="")
        path = (
            os.path.join(folder, folder_name(own), questions.FILE) if own else os.path.join(folder, questions.NEGATIVES)
        )
        by_file.setdefault(path, (own, []))[1].append(question)
    for path, (own, each) in by_file.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(metaschema.pointed(questions.text(each, own), questions.SCHEMA, path))
    return len(new) - sum(number >= len(before) for number in twins), refused


def _question(value: Any, author: str, known: set[str]) -> Question:
    """Return the question of one line. Raises KeyError, TypeError or ValueError."""
    context, kind, grades = value["context"].strip("\n"), value["kind"], value["relevant"]
    if unknown := sorted({*grades} - known):
        raise ValueError(f"unknown pattern {', '.join(unknown)}")
    if not context.strip() or kind not in KINDS or not {*grades.values()} <= {1, 2, 3}:
        raise ValueError("empty context, unknown kind or unknown grade")
    if (kind == "negative") != (not grades):
        raise ValueError("a negative has no grades, and every other question has some")
    language = str(value.get("language") or "any").lower()
    question = Question(context, kind, language if _LANGUAGE.fullmatch(language) else "any", author, grades)
    reader.parse(questions.text([question], ""), "question")  # control characters and the like
    return question


def as_lines(each: Iterable[Question]) -> Iterator[str]:
    """Yield questions in the format of `add` and of `tmkb eval`."""
    for number, question in enumerate(each, 1):
        value = question._asdict() | {"id": f"{question.author}-{number}", "relevant": question.grades}
        yield json.dumps({key: value[key] for key in ("id", "context", "kind", "language", "relevant")})
