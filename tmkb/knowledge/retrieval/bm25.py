"""BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) over the text of patterns.

In search it is what speaks for a pattern where nobody wrote down a cue; alone it is what search is measured against.
"""

from __future__ import annotations

import math
from collections import Counter

from tmkb.knowledge.retrieval import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern

    Postings = dict[str, list[tuple[int, float]]]

K1, B = 1.2, 0.75  # BM25's usual constants
LONGEST = 128  # patterns that one word speaks for, those that it says most about; so ten thousand are no slower to ask

_STOP_WORDS = """
a about add am an and are as at be by can code could create do does for from get has have how i if implement in into is
it its let make me my need new no not of on or our set should so some that the their them then there these this to up
use user users using want was we what when where which who will with write you your
"""
STOP = frozenset(words.stem(word) for word in _STOP_WORDS.split())


def stems(text: str) -> list[str]:
    """The stems of the words of ``text`` that carry meaning, in their order."""
    return [stem for stem in words.words(text) if stem not in STOP]


def postings(patterns: Sequence[Pattern]) -> Postings:
    """Stem → the numbers of the patterns that it speaks for, and how much."""
    texts = [Counter(stems(text(pattern))) for pattern in patterns]
    usual = sum(sum(terms.values()) for terms in texts) / len(texts) if texts else 1.0
    frequency = Counter(term for terms in texts for term in terms)
    found: Postings = {}
    for number, terms in enumerate(texts):
        norm = K1 * (1 - B + B * sum(terms.values()) / usual)
        for term, count in terms.items():
            rarity = math.log(1 + (len(texts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            found.setdefault(term, []).append((number, round(rarity * count * (K1 + 1) / (count + norm), 3)))
    return {term: sorted(found[term], key=lambda each: (-each[1], each[0]))[:LONGEST] for term in sorted(found)}


def scores(found_for: Callable[..., Any], asked: Iterable[str]) -> dict[int, float]:
    """Pattern → how well its text fits the stems in ``asked``; ``found_for`` looks up the postings of one."""
    found: dict[int, float] = {}
    for stem in asked:
        for number, weight in found_for(stem, ()):
            found[number] = found.get(number, 0.0) + weight
    return found


def ranking(patterns: Sequence[Pattern]) -> Callable[[str], list[str]]:
    """What gives, for a question, the ids of all patterns that share a word with it, the best first: plain BM25."""
    made = postings(patterns)

    def ranked(question: str) -> list[str]:
        found = scores(made.get, dict.fromkeys(stems(question)))
        return [patterns[number]["id"] for number in sorted(found, key=lambda n: (-found[n], patterns[n]["id"]))]

    return ranked


def text(pattern: Pattern) -> str:
    """What is compared with a question."""
    told = [pattern["name"], pattern["description"], *pattern["agent_summary"].values(), *pattern["steps"]]
    told += [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", []), pattern["category"]]
    return "\n".join([*told, *pattern.get("blind_spots", [])])
