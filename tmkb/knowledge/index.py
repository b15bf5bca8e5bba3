"""Search: which patterns matter for what somebody is about to write. Deterministic; ties are broken by id.

Two signals add up: the triggers that a pattern's author wrote down, and BM25 (Robertson and Zaragoza, The Probabilistic
Relevance Framework, 2009) over its text. All weights are worked out when the index is built.
"""

from __future__ import annotations

import math
import re
from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.values import JsonObject

K1, B = 1.2, 0.75  # BM25's usual constants
TRIGGER = 4.0  # what a trigger of one word weighs; one of two words twice that
ENOUGH = 0.04  # of the best score; what is below it is noise
READ = 100_000  # characters of a question; whoever has more to say has said it by then

_WORD = re.compile(r"[a-z0-9]+")
_STOP_WORDS = """
a about add am an and are as at be by can code could create do does for from get has have how i if implement in into is
it its let make me my need new no not of on or our set should so some that the their them then there these this to up
use user users using want was we what when where which who will with write you your
"""
_STOP = frozenset(_STOP_WORDS.split())


def stems(text: str) -> list[str]:
    """The words of ``text`` that carry meaning, in lower case and without common endings, in their order."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]


def build(patterns: Sequence[Pattern]) -> JsonObject:
    """What `Index` searches: for each stem the patterns it speaks for, and for the first of each trigger's the rest."""
    texts = [Counter(stems(_text(pattern))) for pattern in patterns]
    usual = sum(sum(terms.values()) for terms in texts) / len(texts) if texts else 1.0
    frequency = Counter(term for terms in texts for term in terms)
    postings: dict[str, Any] = {}
    for number, terms in enumerate(texts):
        norm = K1 * (1 - B + B * sum(terms.values()) / usual)
        for term, count in terms.items():
            rarity = math.log(1 + (len(texts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            postings.setdefault(term, []).append([number, rarity * count * (K1 + 1) / (count + norm)])
    triggers: dict[str, Any] = {}
    for number, pattern in enumerate(patterns):
        phrases = [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", [])]
        for first, *rest in sorted({tuple(sorted(set(stems(phrase)))) for phrase in phrases} - {()}):
            triggers.setdefault(first, []).append([number, TRIGGER * (1 + len(rest)), rest])
    told: list[Any] = [{"id": p["id"], "language": p["language"], "framework": p["framework"]} for p in patterns]
    return {"patterns": told, "postings": postings, "triggers": triggers}


class Index:
    """A built index, ready to be asked."""

    def __init__(self, built: JsonObject) -> None:
        self.patterns: Any = built["patterns"]
        self.postings: Any = built["postings"]
        self.triggers: Any = built["triggers"]

    def search(self, context: str, language: str | None = None, framework: str | None = None) -> list[int]:
        """The numbers of the patterns that matter for ``context``, best first; of this language and framework only."""
        asked = dict.fromkeys(stems(context[:READ]))
        scores = self._scores(asked)
        least = ENOUGH * max(scores.values(), default=0.0)
        chosen = sorted(
            (-score, self.patterns[number]["id"], number) for number, score in scores.items() if score >= least
        )
        return [
            number
            for _, _, number in chosen
            if _passes(self.patterns[number]["language"], language)
            and _passes(self.patterns[number]["framework"], framework)
        ]

    def _scores(self, asked: dict[str, None]) -> dict[int, float]:
        """Pattern → score. One that no trigger speaks for needs two words of a question that has several."""
        triggered: dict[int, float] = {}
        met: dict[int, int] = {}
        scores: dict[int, float] = {}
        for stem in asked:
            for number, weight in self.postings.get(stem, ()):
                scores[number] = scores.get(number, 0.0) + weight
                met[number] = met.get(number, 0) + 1
            for number, weight, rest in self.triggers.get(stem, ()):
                if all(other in asked for other in rest):
                    triggered[number] = triggered.get(number, 0.0) + weight
        needed = min(2, len(asked))
        return {
            number: score + triggered.get(number, 0.0)
            for number, score in scores.items()
            if number in triggered or met[number] >= needed
        }


def _stem(word: str) -> str:
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return word


_ENDINGS = (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4))


def _passes(has: str, wanted: str | None) -> bool:
    return wanted in (None, "any", has) or has == "any"


def _text(pattern: Pattern) -> str:
    parts = [pattern["name"], pattern["description"], *pattern["agent_summary"].values(), *pattern["steps"]]
    parts += [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", []), pattern["category"]]
    return "\n".join([*parts, *pattern.get("blind_spots", [])])
