"""Judge sections of changed code.

Two linear models decide. One knows how changes with a mistake differ from the same changes done right; with signs of
what the change does, it decides whether there is something to say. Together with that of queries it decides which
pattern is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tmkb.errors import SpecError
from tmkb.knowledge.retrieval import index as index_
from tmkb.knowledge.retrieval.index import Index
from tmkb.knowledge.retrieval.signs import Signs, nearby
from tmkb.review import suppression
from tmkb.review.changes import Line, Section

if TYPE_CHECKING:
    from tmkb.review.reviewer import Finding

_QUERY = 0.4  # weight of the score of a query in the choice of a pattern
_REASONS = 3  # lines that are named
_ENOUGH = 0.5  # of the weight of the strongest line, for another one to be named
_LEAST = 12  # known features of a section; fewer say nothing
_DIGITS = 16  # of a fingerprint


@dataclass(frozen=True)
class Comment:
    """What a reviewer should look at.

    Attributes:
        pattern: the id of the pattern.
        path: of the file.
        line: where the comment stands, in the new file.
        lines: the lines that count most, with that one.
        probability: that the section makes a mistake, from 0 to 1; None if a language model reviewed it.
        advice: threat, check, principle, and the code for the stack of the file.
        fingerprint: the same for the same line, wherever in the file it stands.
        who: could do what they may not; from a language model.
        reason: what is wrong in the code; from a language model.
    """

    pattern: str
    path: str
    line: int
    lines: tuple[int, ...]
    probability: float | None
    advice: dict[str, Any]
    fingerprint: str
    who: str = ""
    reason: str = ""


class Judge:
    """Finds the mistake of a section.

    Args:
        index: searches the patterns.
        model: the file of the model of mistakes.
        advise: returns the answer about the pattern with a number, for a question.

    Raises:
        SpecError: the model cannot be used.
    """

    def __init__(self, index: Index, model: str, advise: Callable[[int, str], dict[str, Any]]) -> None:
        self.index = index
        self.model = index_.read(model)
        self.advise = advise
        if "signs" not in self.model.facts["calibration"]:
            raise SpecError([index_.bad_model(model, "it was trained without signs")])
        self._signs = Signs(self.model.facts["calibration"]["signs"])
        self._outputs: dict[str, int] = {id_: output for output, id_ in enumerate(self.model.facts["patterns"])}

    def comment(self, section: Section) -> Comment | None:
        """Return the comment on ``section``; None if there is nothing to say."""
        if not section.places or not self.index.patterns:
            return None
        text = suppression.without_ignores(section.text)
        known = self.model.known(nearby(text))
        if len(known[0]) < _LEAST:
            return None
        scores = self.model.total(known)
        calibration = self.model.facts["calibration"]
        score = scores[-1] + calibration["best"] * max(scores[:-1]) + self._signs.weight(text)
        probability = index_.logistic(calibration["mistake"], score)
        if probability < calibration["commented"]:
            return None
        number = self._named(text, scores)
        lines = self._reasons(section, self._output(number))
        return Comment(
            self.index.patterns[number]["id"],
            section.path,
            lines[0],
            tuple(sorted(lines)),
            round(probability, 3),
            self.advise(number, text),
            fingerprint(section, lines[0]),
        )

    def comment_as(self, finding: Finding) -> Comment:
        """Return the comment that a language model made on a section."""
        ids = [pattern["id"] for pattern in self.index.patterns]
        section, text = finding.section, suppression.without_ignores(finding.section.text)
        advice = self.advise(ids.index(finding.pattern), text)
        mark = fingerprint(section, finding.line)
        return Comment(
            finding.pattern,
            section.path,
            finding.line,
            (finding.line,),
            None,
            advice,
            mark,
            finding.who,
            finding.reason,
        )

    def candidates(self, section: Section, most: int) -> list[str]:
        """Return the ids of up to ``most`` patterns that a mistake in ``section`` could have, the likeliest first.

        Half of them come from both models together, the others from a query about the section.
        """
        text = suppression.without_ignores(section.text)
        found: dict[int, float] = self.index.score(text).scores
        scores = self.model.total(self.model.known(nearby(text)))
        named = {number: self._sum(number, scores, found) for number in found if self._output(number) is not None}
        first = sorted(named, key=lambda number: -named[number])[: most // 2]
        both = dict.fromkeys([*first, *sorted(found, key=lambda number: -found[number])])
        return [self.index.patterns[number]["id"] for number in [*both][:most]]

    def _named(self, text: str, scores: Sequence[float]) -> int:
        """Return the number of the pattern that a comment names; both models count.

        One that the model of mistakes does not know is named if a query about the section finds it first.
        """
        found: dict[int, float] = self.index.score(text).scores
        first: int = max(found, key=lambda number: found[number])
        if self._output(first) is None:
            return first
        known = (number for number in found if self._output(number) is not None)
        return max(known, key=lambda number: self._sum(number, scores, found))

    def _output(self, number: int) -> int | None:
        """Return the output of the model of mistakes for the pattern ``number``; None if it does not know it."""
        return self._outputs.get(self.index.patterns[number]["id"])

    def _sum(self, number: int, scores: Sequence[float], found: Mapping[int, float]) -> float:
        """Return the score of the pattern ``number``, which the model of mistakes knows, from both models."""
        return scores[self._outputs[self.index.patterns[number]["id"]]] + _QUERY * found[number]

    def _reasons(self, section: Section, output: int | None) -> list[int]:
        """Return the numbers of the lines that count most for the comment, the strongest first."""
        weights = {line.number: self._weight(line, output) for line in section.places if line.number is not None}
        first, *others = sorted(weights, key=lambda number: (-weights[number], number))
        least = max(weights[first] * _ENOUGH, 0.0)
        return [first, *(number for number in others[: _REASONS - 1] if weights[number] > least)]

    def _weight(self, line: Line, output: int | None) -> float:
        """Return how much the features of ``line`` count for the pattern ``output``, if any, and for a mistake."""
        best = self.model.facts["calibration"]["best"]
        found = 0.0
        for numbers in self.model.known(line.text):
            sums = self.model.sums(numbers)
            found += (best * (0.0 if output is None else sums[output]) + sums[-1]) * self.model.length(numbers)
        return found


def fingerprint(section: Section, number: int) -> str:
    """Return the digest of the path of ``section`` and of its line ``number``."""
    (line,) = (line for line in section.lines if line.number == number)
    return hashlib.sha256("\0".join([section.path, *line.text.split()]).encode()).hexdigest()[:_DIGITS]
