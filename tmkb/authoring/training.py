"""Train the retrieval model on the example questions of patterns.

Scores of patterns come from a ridge regression on the grades. The gate, whether to answer at all, is a support vector
machine plus the best score. Both are linear in the same features. The text of each pattern is one more example of it.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from tmkb.knowledge.pattern import Pattern
from tmkb.knowledge.questions import Question, Questions
from tmkb.knowledge.retrieval import centroids, index, model, texts, words
from tmkb.schema import textfile

ALPHA = 1.0  # of the ridge regression
COST = 0.25  # of an error of the support vector machine
TOLERANCE, SKETCH = 1e-3, 1e-2  # of the ridge regression's solver; the second to choose features
BEST = 1.5  # weight of the best score in the gate
FEATURES = 50_000  # in a model, or fewer, if more patterns would make its file too large
LARGEST = 1_940_000  # bytes of all features of a model; with the rest of the file it stays below 2 MB
NAME = 6  # bytes of a feature's name, a little more than on average
LEAST = 2  # questions that contain a feature
ANSWERED = 0.036  # share of negatives of authors held out that may be answered
HELD = 50  # questions of an author that is held out
GROUPS = 10  # of authors that are held out together
ORDINARY = ("request", "brief")  # kinds of questions about ordinary work, most of which has one of a few dangers
WEIGHT = 0.3  # of these questions, so that they do not outweigh the others
SAMPLES = 8  # questions of a pattern of one's own
SHOWN = 0.02  # probability of being relevant below which a second or third pattern is not shown

Matrix = Any  # scipy.sparse.csr_matrix
Array = Any  # numpy.ndarray of float
Fit = Callable[..., "Weights"]  # of features to grades; takes a tolerance


class Examples(NamedTuple):
    """Which example has which feature: a row of 0 and 1 for each example. The first `words` columns are not n-grams."""

    names: list[str]
    words: int
    rows: Matrix

    def take(self, rows: Sequence[int] | Array | slice) -> Examples:
        """Return only these examples."""
        return self._replace(rows=self.rows[rows])


class Weights(NamedTuple):
    """Weights of features for all outputs (patterns, then the gate), and their biases."""

    features: Array
    biases: Array


class Trained(NamedTuple):
    """The weights of the features that are kept. `columns`: their numbers in the examples; `rarity`: see `Model`."""

    names: list[str]
    columns: Array
    rarity: Array
    weights: Weights


def examples(samples: Sequence[str]) -> Examples:
    """Return the features of ``samples``."""
    blocks = [[words.features(sample) for sample in samples], [words.ngrams(sample) for sample in samples]]
    names = [sorted(set().union(*block)) for block in blocks]
    numbers = {name: number for number, name in enumerate([*names[0], *names[1]])}
    columns = [sorted(numbers[name] for name in one | other) for one, other in zip(*blocks, strict=True)]
    flat = np.array([number for row in columns for number in row], dtype=np.int32)
    starts = np.cumsum([0, *map(len, columns)])
    rows = sparse.csr_matrix((np.ones(len(flat)), flat, starts), shape=(len(samples), len(numbers)))
    return Examples([*numbers], len(names[0]), rows)


def weigh(every: Examples, columns: Array, rarity: Array) -> Matrix:
    """Return the features ``columns`` of all examples as two unit vectors side by side: words, and n-grams."""
    border = int(np.searchsorted(columns, every.words))
    weighted = every.rows[:, columns] @ sparse.diags(rarity)
    sides = []
    for side in (weighted[:, :border], weighted[:, border:]):
        norms = np.sqrt(np.asarray(side.multiply(side).sum(axis=1)).ravel())
        sides.append(sparse.diags(1 / np.maximum(norms, 1e-9)) @ side)
    return sparse.hstack(sides).tocsr()


def targets(questions: Sequence[Question], ids: Sequence[str]) -> Array:
    """Return the grades of ``questions`` for the patterns ``ids``, from 0 to 1."""
    columns = {id_: number for number, id_ in enumerate(ids)}
    found = np.zeros((len(questions), len(ids)))
    for row, question in enumerate(questions):
        for id_, grade in question.grades.items():
            if id_ in columns:
                found[row, columns[id_]] = grade / 3
    return found


def fit(rows: Matrix, grades: Array, tolerance: float = TOLERANCE, weights: Array | None = None) -> Weights:
    """Fit patterns on the rows with grades, and the gate on all. The last rows are the texts of patterns."""
    positive = np.flatnonzero(grades.any(axis=1))
    counted = np.ones(len(positive)) if weights is None else weights[positive]
    mean = np.average(grades[positive], axis=0, weights=counted)
    ridge = Ridge(alpha=ALPHA, fit_intercept=False, solver="sparse_cg", tol=tolerance)
    ridge.fit(rows[positive], grades[positive] - mean, sample_weight=counted)
    gate = LinearSVC(C=COST, class_weight="balanced", random_state=0).fit(rows, grades.any(axis=1))
    return Weights(np.hstack([ridge.coef_.T, gate.coef_.T]), np.append(mean, gate.intercept_))


def scores(rows: Matrix, weights: Weights, best: float = BEST) -> Array:
    """Return the scores of each row for each output; the gate counts the ``best`` score, too."""
    found = rows @ weights.features + weights.biases
    found[:, -1] += best * found[:, :-1].max(axis=1)
    return found


def train(every: Examples, grades: Array, fit: Fit = fit, most: int = FEATURES) -> Trained:
    """Train on all examples, keep the strongest features, at most ``most``, and train again with only those."""
    frequency = np.asarray(every.rows.sum(axis=0)).ravel()
    columns = np.flatnonzero(frequency >= LEAST)
    rarity = np.log((1 + len(grades)) / (1 + frequency)) + 1
    rarity = np.round(rarity * model.RARITY) / model.RARITY
    limit = min(most, most_features(grades.shape[1] + 1))
    if len(columns) > limit:
        rows = weigh(every, columns, rarity[columns])
        weights = fit(rows, grades, SKETCH)
        use = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=0)).ravel())
        ranking = np.linalg.norm(weights.features[:, :-1], axis=1) * use
        gate = np.abs(weights.features[:, -1]) * use
        strength = ranking / ranking.mean() + gate / gate.mean()
        columns = np.sort(columns[np.argsort(-strength, kind="stable")[:limit]])
    weights = fit(weigh(every, columns, rarity[columns]), grades)
    return Trained([every.names[column] for column in columns], columns, rarity[columns], weights)


def most_features(outputs: int) -> int:
    """Return how many features a model with ``outputs`` has at most, which keeps its file below 2 MB."""
    return min(FEATURES, LARGEST // (model.row_size(outputs) + NAME))


def prepare(questions: Sequence[Question], patterns: Sequence[Pattern]) -> tuple[Examples, Array]:
    """Return the examples for `train` with their grades: the questions, and the text of each pattern."""
    samples = [question.context for question in questions] + [texts.of(pattern) for pattern in patterns]
    grades = targets(questions, [pattern["id"] for pattern in patterns])
    return examples(samples), np.vstack([grades, np.eye(len(patterns))])


def importance(questions: Sequence[Question], patterns: Sequence[Pattern]) -> Array:
    """Return the weight of each example of `prepare`."""
    return np.array([WEIGHT if question.kind in ORDINARY else 1.0 for question in questions] + [1.0] * len(patterns))


def held_authors(questions: Iterable[Question]) -> list[str]:
    """Return the authors that are held out: those with at least `HELD` questions."""
    counts = Counter(question.author for question in questions)
    return sorted(author for author, count in counts.items() if count >= HELD)


def folds(questions: Sequence[Question], patterns: Sequence[Pattern]) -> Array:
    """Return scores of each question from a model that was trained without its author; NaN for authors not held out.

    Authors are held out in `GROUPS` groups, because a model for each of many authors would take hours.
    """
    every, grades = prepare(questions, patterns)
    counted = importance(questions, patterns)
    names = np.array([question.author for question in questions] + [""] * len(patterns))
    found = np.full((len(questions), len(patterns) + 1), np.nan)
    authors = held_authors(questions)
    for group in range(min(GROUPS, len(authors))):
        held = np.isin(names, authors[group::GROUPS])
        trained = train(every.take(~held), grades[~held], partial(fit, weights=counted[~held]))
        found[np.flatnonzero(held)] = held_scores(trained, every.take(held))
    return found


def held_scores(trained: Trained, every: Examples, best: float = BEST) -> Array:
    """Return the scores of examples as the stored model gives them."""
    return scores(weigh(every, trained.columns, trained.rarity), stored(trained)[2], best)


def stored(trained: Trained) -> tuple[float, Array, Weights]:
    """Return the unit, the stored rows, and the weights that they stand for."""
    rarity = trained.rarity
    values = trained.weights.features * rarity[:, None]
    most = model.OFFSET - 1
    largest = np.abs(values).max(axis=1)
    unit = float(largest.max()) / (most * model.MAX_FACTOR)
    factors = np.clip(np.ceil(largest / most / unit), 1, model.MAX_FACTOR)[:, None]
    steps = np.clip(np.round(values / unit / factors), -most, most)
    cells = np.hstack([factors, np.round(rarity * model.RARITY)[:, None], steps]).astype(int)
    return unit, cells, Weights(steps * factors * unit / rarity[:, None], trained.weights.biases)


def calibrate(held: Array, questions: Sequence[Question], patterns: Sequence[Pattern]) -> dict[str, Any]:
    """Return how scores become probabilities, and the thresholds. ``held``: scores from `folds`."""
    measured: list[int] = np.flatnonzero(~np.isnan(held[:, -1])).tolist()
    asked = [questions[at] for at in measured]
    limits = thresholds(held[measured], asked, [pattern["id"] for pattern in patterns])
    special = [question for question in questions if question.kind not in ORDINARY]
    return {**limits, "best": BEST, **_own_patterns(special, patterns, limits["answered"])}


def thresholds(held: Array, questions: Sequence[Question], ids: Sequence[str]) -> dict[str, Any]:
    """Return the logistic functions (slope, intercept) of the gate and of relevance, and from where on both count."""
    answerable = np.array([bool(question.grades) for question in questions])
    gate = logistic(held[:, -1], answerable)
    rows = np.flatnonzero(answerable)[:, None]
    best = np.argsort(-held[answerable, :-1], axis=1, kind="stable")[:, :3]
    relevant = logistic(held[rows, best].ravel(), (targets(questions, ids)[rows, best] > 0.5).ravel())
    limit = float(np.quantile(held[~answerable, -1], 1 - ANSWERED))
    return {"gate": gate, "relevant": relevant, "answered": round(index.logistic(gate, limit), 4), "shown": SHOWN}


def logistic(values: Array, truths: Array) -> list[float]:
    """Return slope and intercept of the logistic function by which ``values`` predict ``truths``."""
    found = LogisticRegression(C=1e6).fit(values.reshape(-1, 1), truths)
    return [round(float(found.coef_[0, 0]), 4), round(float(found.intercept_[0]), 4)]


def _own_patterns(questions: Sequence[Question], patterns: Sequence[Pattern], answered: float) -> dict[str, Any]:
    """Return the calibration of patterns that are not trained, as if ours had `SAMPLES` questions each and no more.

    A cosine that one negative in a hundred reaches has the probability ``answered``.
    """
    draw = random.Random(0)
    frequency = Counter(feature for question in questions for feature in words.features(question.context))
    rarest = round(math.log((1 + len(questions)) / 2) + 1, 4)
    by_pattern = Questions([*questions]).contexts()
    samples = {}
    for number, pattern in enumerate(patterns):
        contexts = by_pattern.get(pattern["id"], [])
        samples[number] = centroids.of(pattern, draw.sample(contexts, min(SAMPLES, len(contexts))))

    def rarity(feature: str) -> float:
        return math.log((1 + len(questions)) / (1 + max(1, frequency[feature]))) + 1

    table = centroids.Table(centroids.build(samples, rarity))
    used = {context for each in samples.values() for context in each}
    held = [question for question in questions if question.context not in used]
    cosines = np.zeros((len(held), len(patterns)))
    for row, question in enumerate(held):
        found = centroids.cosines(table, centroids.unit(words.features(question.context), rarity))
        cosines[row, [*found]] = [*found.values()]
    grades = targets(held, [pattern["id"] for pattern in patterns])
    answerable = grades.any(axis=1)
    slope, intercept = np.polyfit(cosines[answerable].ravel(), grades[answerable].ravel(), 1)
    best = cosines.max(axis=1)
    steepness = logistic(best, answerable)[0]
    limit = float(np.quantile(best[~answerable], 0.99))
    own = [steepness, round(math.log(answered / (1 - answered)) - steepness * limit, 4)]
    return {"centroid": [round(float(slope), 4), round(float(intercept), 4)], "own": own, "rarest": rarest}


def write(path: str, trained: Trained, ids: Sequence[str], facts: Mapping[str, Any], compressed: bool = False) -> int:
    """Write the file of a model and return its size in bytes. Raises OSError."""
    unit, cells, _ = stored(trained)
    biases = [round(float(bias), 6) for bias in trained.weights.biases]
    packed = model.pack({**facts, "patterns": [*ids], "biases": biases, "unit": unit}, trained.names, cells.tolist())
    written = zlib.compress(packed, 9) if compressed else packed
    textfile.save(path, written)
    return len(written)
