"""Judge sections of changed code.

Two linear models decide. One knows how changes with a mistake differ from the same changes done right; it decides
whether there is something to say. The other is that of queries; it decides about what.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tmkb.knowledge.retrieval import index as index_
from tmkb.knowledge.retrieval.index import Index
from tmkb.knowledge.retrieval.model import Model
from tmkb.review.changes import Line, Section

FILE = os.path.join("_questions", "review.bin")  # beside the folders of patterns
_REASONS = 3  # lines that are named
_ENOUGH = 0.5  # of the weight of the strongest line, for another one to be named
_DIGITS = 16  # of a fingerprint


@dataclass(frozen=True)
class Comment:
    """What a reviewer should look at.

    Attributes:
        pattern: the id of the pattern.
        path: of the file.
        line: where the comment stands, in the new file.
        lines: the lines that count most, with that one.
        probability: that the section makes a mistake, from 0 to 1.
        advice: threat, check, principle, and the code for the stack of the file.
        fingerprint: the same for the same pattern in the same code, wherever in the file it stands.
    """

    pattern: str
    path: str
    line: int
    lines: tuple[int, ...]
    probability: float
    advice: dict[str, Any]
    fingerprint: str


class Judge:
    """Finds the mistake of a section.

    Args:
        index: searches the patterns.
        model: the file of the model of mistakes.
        advise: returns the answer about the pattern with a number, for a question.
    """

    def __init__(self, index: Index, model: str, advise: Callable[[int, str], dict[str, Any]]) -> None:
        self.index = index
        self.model = index_.read(model)
        self.advise = advise

    def comment(self, section: Section) -> Comment | None:
        """Return the comment on ``section``; None if there is nothing to say."""
        if not section.added:
            return None
        probability = self.probability(section)
        calibration = self.model.facts["calibration"]
        if probability < calibration["commented"]:
            return None
        scored = self.index.score(section.text)
        if scored.answer < calibration["about_access"]:
            return None
        number = self.index.rank(scored)[0]
        pattern = self.index.patterns[number]["id"]
        lines = self._reasons(section, pattern)
        return Comment(
            pattern,
            section.path,
            lines[0],
            tuple(sorted(lines)),
            round(probability, 3),
            self.advise(number, section.text),
            _fingerprint(pattern, section),
        )

    def probability(self, section: Section) -> float:
        """Return the probability that ``section`` makes a mistake."""
        line = self.model.facts["calibration"]["mistake"]
        return index_.logistic(line, self.model.scores(section.text)[-1])

    def _reasons(self, section: Section, pattern: str) -> list[int]:
        """Return the numbers of the added lines that count most for the comment, the strongest first."""
        known: list[str] = self.index.model.facts["patterns"]
        weighed = [(self.model, self.model.outputs - 1)]
        weighed += [(self.index.model, known.index(pattern))] if pattern in known else []
        weights = {line: sum(_weight(model, output, line) for model, output in weighed) for line in section.added}
        ordered = sorted(weights, key=lambda line: (-weights[line], line.number or 0))
        least = weights[ordered[0]] * _ENOUGH
        return [line.number for line in ordered[:_REASONS] if weights[line] >= least and line.number is not None]


def _weight(model: Model, output: int, line: Line) -> float:
    """Return how much the features of ``line`` count for ``output``."""
    return sum(model.sums(numbers)[output] * model.length(numbers) for numbers in model.known(line.text))


def _fingerprint(pattern: str, section: Section) -> str:
    code = ["".join(line.text.split()) for line in section.added]
    return hashlib.sha256("\0".join([pattern, section.path, *code]).encode()).hexdigest()[:_DIGITS]


def path(folders: Sequence[str]) -> str:
    """Return the file of the model of mistakes for patterns in ``folders``."""
    return index_.path(folders, FILE)
