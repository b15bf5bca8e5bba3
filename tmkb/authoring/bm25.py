"""BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) over the text of patterns.

It is the baseline that search is compared with.
"""

from __future__ import annotations

import math
from collections import Counter

from tmkb.knowledge.retrieval import texts, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern

    Postings = dict[str, list[tuple[int, float]]]

K1, B = 1.2, 0.75  # BM25's usual constants
MAX_POSTINGS = 128  # patterns for one word, those with the highest weight; bounds the time of a search

_STOP_WORDS = """
a about add am an and are as at be by can code could create do does for from get has have how i if implement in into is
it its let make me my need new no not of on or our set should so some that the their them then there these this to up
use user users using want was we what when where which who will with write you your
"""
STOP = frozenset(words.stem(word) for word in _STOP_WORDS.split())


def stems(text: str) -> list[str]:
    """Return the stems of ``text`` in order, without stop words."""
    return [stem for stem in words.words(text) if stem not in STOP]


def postings(patterns: Sequence[Pattern]) -> Postings:
    """Return the numbers and weights of patterns by stem."""
    samples = [Counter(stems(texts.of(pattern))) for pattern in patterns]
    average = sum(sum(terms.values()) for terms in samples) / len(samples) if samples else 1.0
    frequency = Counter(term for terms in samples for term in terms)
    found: Postings = {}
    for number, terms in enumerate(samples):
        norm = K1 * (1 - B + B * sum(terms.values()) / average)
        for term, count in terms.items():
            rarity = math.log(1 + (len(samples) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            found.setdefault(term, []).append((number, round(rarity * count * (K1 + 1) / (count + norm), 3)))
    return {term: sorted(found[term], key=lambda each: (-each[1], each[0]))[:MAX_POSTINGS] for term in sorted(found)}


def scores(lookup: Callable[..., Any], stems: Iterable[str]) -> dict[int, float]:
    """Return the score of each pattern that contains one of ``stems``; ``lookup`` returns the postings of a stem."""
    by_pattern: dict[int, float] = {}
    for stem in stems:
        for number, weight in lookup(stem, ()):
            by_pattern[number] = by_pattern.get(number, 0.0) + weight
    return by_pattern


def ranking(patterns: Sequence[Pattern]) -> Callable[[str], list[str]]:
    """Return a function from a question to the ids of all patterns that share a word with it, best first."""
    lookup = postings(patterns).get

    def rank(question: str) -> list[str]:
        found = scores(lookup, dict.fromkeys(stems(question)))
        return [patterns[number]["id"] for number in sorted(found, key=lambda n: (-found[n], patterns[n]["id"]))]

    return rank
