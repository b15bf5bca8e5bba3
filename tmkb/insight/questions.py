"""Group similar questions, so that a person can read what many of them are about.

scikit-learn (extra `train`) does it: agglomerative clustering of TF-IDF vectors by their cosine distance. Without it,
each question is a group of its own.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

_MOST_WORDS = 5000  # that groups are made of; clients choose the words
_DISTANCE = 0.85  # mean cosine distance up to which two groups become one
_WORDS = 5  # of a group


class Question(NamedTuple):
    """A question, and stack → how often it was asked there."""

    text: str
    stacks: Counter[str]

    @property
    def times(self) -> int:
        """How often it was asked."""
        return self.stacks.total()


class Group(NamedTuple):
    """Similar questions, the most typical first, and the words that most of them have."""

    typical: list[Question]
    words: list[str]

    @property
    def times(self) -> int:
        """How often its questions were asked."""
        return self.stacks.total()

    @property
    def stacks(self) -> Counter[str]:
        """Stack → how often its questions were asked there."""
        return sum((question.stacks for question in self.typical), Counter())


def can_group() -> bool:
    """Return whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None


def grouped(asked: Sequence[Question]) -> list[Group]:
    """Return the groups of different questions, those that were asked most often first."""
    groups = _groups(asked) if len(asked) > 1 and can_group() else [Group([each], []) for each in asked]
    return sorted(groups, key=lambda group: (-group.times, group.typical[0].text))


def _groups(asked: Sequence[Question]) -> Iterable[Group]:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        stop_words="english", sublinear_tf=True, token_pattern=r"[^\W\d_]{3,}", max_features=_MOST_WORDS
    )
    try:
        vectors = vectorizer.fit_transform([each.text for each in asked]).toarray()
    except ValueError:  # only stop words
        return [Group([each], []) for each in asked]
    empty = ~vectors.any(axis=1)
    vectors[empty, 0] = 1e-9  # a cosine needs a direction
    clustering = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=_DISTANCE
    )
    labels = clustering.fit_predict(vectors)
    names = vectorizer.get_feature_names_out()
    return [_group(asked, vectors, [*(labels == label).nonzero()[0]], names) for label in range(labels.max() + 1)]


def _group(asked: Sequence[Question], vectors: Any, numbers: Sequence[int], names: Sequence[str]) -> Group:
    """Return the group of the questions with these ``numbers``; those near its centre are typical."""
    members = vectors[numbers]
    centre = members.mean(axis=0)
    nearness = members @ centre
    order = sorted(range(len(numbers)), key=lambda each: (-nearness[each], asked[numbers[each]].text))
    shared = (members > 0).sum(axis=0)
    words = sorted(range(len(names)), key=lambda word: (-shared[word], -centre[word]))
    least = 2 if len(numbers) > 1 else 1
    return Group(
        [asked[numbers[each]] for each in order], [names[word] for word in words[:_WORDS] if shared[word] >= least]
    )
