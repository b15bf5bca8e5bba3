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
        scores = self.model.scores(section.text)
        calibration = self.model.facts["calibration"]
        best = max(scores[:-1])
        probability = index_.logistic(calibration["mistake"], scores[-1] + calibration["best"] * best)
        if probability < calibration["commented"]:
            return None
        output = scores.index(best)
        number = self._number(section, self.model.facts["patterns"][output])
        if number is None:
            return None
        lines = self._reasons(section, output)
        return Comment(
            self.index.patterns[number]["id"],
            section.path,
            lines[0],
            tuple(sorted(lines)),
            round(probability, 3),
            self.advise(number, section.text),
            _fingerprint(self.index.patterns[number]["id"], section),
        )

    def _number(self, section: Section, id_: str) -> int | None:
        """Return the number of the pattern that a comment names: ``id_``, or one that the model does not know."""
        numbers = {pattern["id"]: number for number, pattern in enumerate(self.index.patterns)}
        first = next(iter(self.index.matches(section.text)), None)
        if first is not None and self.index.patterns[first]["id"] not in self.model.facts["patterns"]:
            return first
        return numbers.get(id_, first)

    def _reasons(self, section: Section, output: int) -> list[int]:
        """Return the numbers of the added lines that count most for the comment, the strongest first."""
        weights = {line: self._weight(line, output) for line in section.added}
        ordered = sorted(weights, key=lambda line: (-weights[line], line.number or 0))
        least = weights[ordered[0]] * _ENOUGH
        return [line.number for line in ordered[:_REASONS] if weights[line] >= least and line.number is not None]

    def _weight(self, line: Line, output: int) -> float:
        """Return how much the features of ``line`` count for the pattern ``output`` and for a mistake."""
        best = self.model.facts["calibration"]["best"]
        found = 0.0
        for numbers in self.model.known(line.text):
            sums = self.model.sums(numbers)
            found += (best * sums[output] + sums[-1]) * self.model.length(numbers)
        return found


def _fingerprint(pattern: str, section: Section) -> str:
    code = ["".join(line.text.split()) for line in section.added]
    return hashlib.sha256("\0".join([pattern, section.path, *code]).encode()).hexdigest()[:_DIGITS]


def path(folders: Sequence[str]) -> str:
    """Return the file of the model of mistakes for patterns in ``folders``."""
    return index_.path(folders, FILE)
