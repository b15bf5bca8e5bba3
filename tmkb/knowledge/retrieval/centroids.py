"""Find patterns that the model was not trained on, by the words of their own questions and texts.

Each of their texts is a unit vector of features, weighted by rarity. Their sum, made a unit vector again, is the
centroid of the pattern (Rocchio, Relevance Feedback in Information Retrieval, 1971). The score of a question is its
cosine with the centroid, on the scale of the model's scores (`calibration` in the facts of the model).
"""

from __future__ import annotations

import math

from tmkb import stdlib
from tmkb.knowledge.retrieval import texts, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

    Rarity = Callable[[str], float]

MAX_FEATURES = 150  # of a pattern, those with the highest weight
MAX_PATTERNS = 128  # for one feature, also those; bounds the time of a search
_STEP = 0.001  # of a stored weight
_decode, _encode = stdlib.decoder(), stdlib.encoder()


def of(pattern: Pattern, contexts: Sequence[str]) -> list[str]:
    """Return the questions ``contexts``, the text of a pattern, and its name and keywords, which are like questions."""
    return [*contexts, texts.of(pattern), pattern["name"], *pattern["triggers"]["keywords"]]


def centroid(samples: Iterable[str], rarity: Rarity) -> dict[str, float]:
    """Return the strongest features of the centroid of ``samples``."""
    total: dict[str, float] = {}
    for sample in samples:
        for feature, weight in unit(words.features(sample), rarity).items():
            total[feature] = total.get(feature, 0.0) + weight
    strongest = sorted(total, key=lambda feature: (-total[feature], feature))[:MAX_FEATURES]
    length = math.sqrt(math.fsum(weight * weight for weight in total.values()))
    return {feature: total[feature] / length for feature in strongest}


def unit(features: Iterable[str], rarity: Rarity) -> dict[str, float]:
    """Return the weights of ``features`` as a unit vector."""
    weights = {feature: rarity(feature) for feature in features}
    length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items()}


def build(samples: Mapping[int, Sequence[str]], rarity: Rarity) -> JsonObject:
    """Return the index of patterns: feature → numbers and weights of patterns, encoded as text."""
    found: dict[str, list[tuple[int, int]]] = {}
    for number in sorted(samples):
        for feature, weight in centroid(samples[number], rarity).items():
            found.setdefault(feature, []).append((number, round(weight / _STEP)))
    strongest = {name: sorted(found[name], key=lambda row: (-row[1], row[0]))[:MAX_PATTERNS] for name in sorted(found)}
    return {name: _encode(rows) for name, rows in strongest.items()}


class Table(dict[str, "list[list[int]]"]):
    """An index from `build`, decoded as it is used."""

    def __init__(self, packed: Any) -> None:
        self.packed: dict[str, str] = packed

    def __missing__(self, feature: str) -> list[list[int]]:
        rows: list[list[int]] = _decode(self.packed[feature])
        self[feature] = rows
        return rows


def cosines(table: Table, question: Mapping[str, float]) -> dict[int, float]:
    """Return the cosine of ``question`` (a unit vector) with each pattern that shares a feature with it."""
    found: dict[int, float] = {}
    for feature in sorted(question.keys() & table.packed.keys()):
        share = question[feature] * _STEP
        for number, weight in table[feature]:
            found[number] = found.get(number, 0.0) + share * weight
    return found
