"""Train the model by which a review decides whether a changed section makes a mistake.

It learns from the example questions that are code: those that show a mistake, and those whose code is right or about
something else. Nearly all of the former have a twin that is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from tmkb.authoring import training
from tmkb.authoring.training import Array, Examples, Trained, Weights
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import model

COST = 0.5  # of an error of the support vector machine
FEATURES = 20_000  # in the model
CODE = ("code", "diff")  # kinds that show a mistake unless they are secure
COMMENTED = 0.15  # share of the sections without a mistake, of authors held out, that may be commented


def examples(questions: Sequence[Question]) -> tuple[list[Question], Array]:
    """Return the questions that are learnt from, and for each whether it makes a mistake: 1 or 0."""
    chosen = [question for question in questions if not question.grades or question.kind in CODE]
    return chosen, np.array([bool(each.grades) and not each.secure for each in chosen], dtype=float)


def train(every: Examples, mistakes: Array) -> Trained:
    """Train on all examples, keep the strongest features, and train again with only those."""
    frequency = np.asarray(every.rows.sum(axis=0)).ravel()
    columns = np.flatnonzero(frequency >= training.LEAST)
    rarity = np.log((1 + len(mistakes)) / (1 + frequency)) + 1
    rarity = np.round(rarity * model.RARITY) / model.RARITY
    if len(columns) > FEATURES:
        rows = training.weigh(every, columns, rarity[columns])
        use = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=0)).ravel())
        strength = np.abs(_fit(rows, mistakes).features[:, 0]) * use
        columns = np.sort(columns[np.argsort(-strength, kind="stable")[:FEATURES]])
    weights = _fit(training.weigh(every, columns, rarity[columns]), mistakes)
    return Trained([every.names[column] for column in columns], columns, rarity[columns], weights)


def _fit(rows: Any, mistakes: Array) -> Weights:
    fitted = LinearSVC(C=COST, class_weight="balanced", random_state=0).fit(rows, mistakes)
    return Weights(fitted.coef_.T, np.array([float(fitted.intercept_[0])]))
