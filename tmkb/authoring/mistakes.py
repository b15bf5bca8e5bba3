"""Train the model of `tmkb.review`, which separates changes that make a mistake from those that do not.

It learns from the example questions that are code, most of which are pairs of authors: the same change with the mistake
and right. The grades of code that is right are zero here. Idioms are further examples of right code. The weights
of signs are learned on the scores of authors held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from tmkb.authoring import training
from tmkb.authoring.training import Array, Examples, Matrix, Trained, Weights
from tmkb.knowledge.pattern import Pattern
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import index
from tmkb.knowledge.retrieval.signs import Signs, nearby

BEST = 5.0  # weight of the best pattern's score in the score of a mistake
FEATURES = 25_000  # in the model
COST = 0.5  # of an error of the support vector machine
DIFF = 3.0  # weight of an example that is a diff, as reviews see it
ALPHA = 0.5  # of the ridge regression
COMMENTED = 0.01  # share of harmless sections, of authors held out, that may get a comment; a diff has two or three
_CODE = ("code", "diff", "stub")  # kinds that show a mistake unless their code is right
_IDIOMS = "idioms"  # the author of idioms, which is never held out


class Labelled(NamedTuple):
    """Examples with their features, grades for the patterns (zero without a mistake), weights, and authors.

    `secure`: whether somebody said that the code is right. `harmless`: whether it is no correction of a mistake either.
    """

    samples: list[str]
    every: Examples
    grades: Array
    weights: Array
    authors: Array
    secure: Array
    harmless: Array

    @property
    def mistaken(self) -> Array:
        """Whether each example makes a mistake."""
        return self.grades.any(axis=1)

    def of(self, chosen: Array) -> tuple[Examples, Array, Array]:
        """Return features, grades and weights of the ``chosen`` examples."""
        return self.every.take(chosen), self.grades[chosen], self.weights[chosen]


def prepare(questions: Sequence[Question], idioms: Sequence[str], patterns: Sequence[Pattern]) -> Labelled:
    """Return the examples: code among ``questions``, and the code of ``idioms``, which is right."""
    right = [Question(code, "code", "any", _IDIOMS, {}, True) for code in idioms]
    chosen = [each for each in questions if each.kind in _CODE or (not each.grades and "\n" in each.context)] + right
    samples = [each.context for each in chosen]
    every = training.examples([nearby(sample) for sample in samples])
    grades = training.targets(
        [each._replace(grades={}) if each.secure else each for each in chosen], [pattern["id"] for pattern in patterns]
    )
    weights = np.array([DIFF if _is_diff(sample) else 1.0 for sample in samples])
    authors = np.array([each.author for each in chosen])
    secure = np.array([each.secure for each in chosen])
    harmless = np.array([not each.grades for each in chosen])
    return Labelled(samples, every, grades, weights, authors, secure, harmless)


def _is_diff(sample: str) -> bool:
    return "\n+" in sample or "\n-" in sample


def train(every: Examples, grades: Array, weights: Array) -> Trained:
    """Train on all examples, keep the strongest features, and train again with only those."""

    def fit(rows: Matrix, grades: Array, _tolerance: float = 0.0) -> Weights:
        ridge = Ridge(alpha=ALPHA, fit_intercept=False, solver="cholesky")  # exact; there are few examples
        ridge.fit(rows, grades, sample_weight=weights)
        gate = LinearSVC(C=COST, class_weight="balanced", random_state=0)
        gate.fit(rows, grades.any(axis=1), sample_weight=weights / weights.mean())
        biases = np.append(np.zeros(grades.shape[1]), gate.intercept_)
        return Weights(np.hstack([ridge.coef_.T, gate.coef_.T]), biases)

    return training.train(every, grades, fit, FEATURES)


def folds(labelled: Labelled) -> Array:
    """Return the scores of changes from a model that was trained without their author; NaN for all others.

    Held out are the authors of pairs.
    """
    diffs = np.array([_is_diff(sample) for sample in labelled.samples])
    writers = labelled.authors[labelled.secure & (labelled.authors != _IDIOMS)]
    found = np.full((len(labelled.samples), labelled.grades.shape[1] + 1), np.nan)
    for author in np.unique(writers):
        held = labelled.authors == author
        trained = train(*labelled.of(~held))
        tested = np.flatnonzero(held & diffs)
        found[tested] = training.held_scores(trained, labelled.every.take(tested), BEST)
    return found


def calibrate(held: Array, labelled: Labelled, rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return how scores and signs become the probability of a mistake, and from where on a change gets a comment.

    Args:
        held: scores from `folds`.
        labelled: the examples of these scores.
        rules: of signs. The threshold is measured with the weights of signs that the other authors give.
    """
    measured = np.flatnonzero(~np.isnan(held[:, -1]))
    unweighted = Signs(rules)  # compiles all expressions
    found = [unweighted.of(labelled.samples[at]) for at in measured]
    names = sorted(set().union(*found))
    cells = np.array(
        [[held[at, -1], *(name in signs for name in names)] for at, signs in zip(measured, found, strict=True)]
    )
    mistaken, authors = labelled.mistaken[measured], labelled.authors[measured]
    totals = np.zeros(len(measured))
    for author in np.unique(authors):
        others = authors != author
        totals[~others] = cells[~others] @ _weights(cells[others], mistaken[others])
    limit = float(np.quantile(totals[labelled.harmless[measured]], 1 - COMMENTED))
    mistake = training.logistic(totals, mistaken)
    weights = {name: round(float(weight), 4) for name, weight in zip(names, _weights(cells, mistaken)[1:], strict=True)}
    signs = {"words": rules["words"], "forms": rules["forms"], "weights": weights}
    return {"mistake": mistake, "commented": round(index.logistic(mistake, limit), 4), "best": BEST, "signs": signs}


def _weights(cells: Array, mistaken: Array) -> Array:
    """Return the weight of each column on the scale of the first, which is the score."""
    weights = LogisticRegression(max_iter=1000).fit(cells, mistaken).coef_[0]
    return weights / weights[0]
