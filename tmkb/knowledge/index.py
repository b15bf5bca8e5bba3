"""Search: which patterns matter for what somebody is about to write. Deterministic; ties are broken by id.

Two signals add up: the triggers that a pattern's author wrote down, and BM25 (Robertson and Zaragoza, The Probabilistic
Relevance Framework, 2009) over its text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from tmkb.knowledge.pattern import Pattern

K1, B = 1.2, 0.75  # BM25's usual constants
TRIGGER = 4.0  # what a trigger of one word weighs; one of two words twice that
ENOUGH = 0.04  # of the best score; what is below it is noise

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


def _stem(word: str) -> str:
    for ending, least in (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return word


class Index:
    """Everything about the patterns that a search needs, worked out once."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = list(patterns)
        self.terms = [Counter(stems(_text(pattern))) for pattern in patterns]
        self.sizes = [sum(terms.values()) for terms in self.terms]
        self.triggers = [_triggers(pattern) for pattern in patterns]
        frequency = Counter(term for terms in self.terms for term in terms)
        count = len(self.patterns)
        self.weight = {term: math.log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in frequency.items()}
        self.usual = sum(self.sizes) / count if count else 1.0

    def search(self, context: str, language: str | None = None, framework: str | None = None) -> list[Pattern]:
        """The patterns that matter for ``context``, best first; of this language and framework, where one is named."""
        asked = dict.fromkeys(stems(context))
        scored = [(self._score(number, asked), number) for number in range(len(self.patterns))]
        best = max((score for score, _ in scored), default=0.0)
        chosen = [(score, number) for score, number in scored if score > 0 and score >= ENOUGH * best]
        chosen.sort(key=lambda each: (-each[0], self.patterns[each[1]]["id"]))
        return [
            self.patterns[number]
            for _, number in chosen
            if _passes(self.patterns[number]["language"], language)
            and _passes(self.patterns[number]["framework"], framework)
        ]

    def _score(self, number: int, asked: dict[str, None]) -> float:
        """0 for a pattern that has no trigger and, of a question of several words, only a single one."""
        terms = self.terms[number]
        met = [term for term in asked if term in terms]
        triggered = sum(TRIGGER * len(trigger) for trigger in self.triggers[number] if trigger <= asked.keys())
        if not triggered and len(met) < min(2, len(asked)):
            return 0.0
        norm = K1 * (1 - B + B * self.sizes[number] / self.usual)
        return triggered + sum(self.weight[term] * terms[term] * (K1 + 1) / (terms[term] + norm) for term in met)


def _passes(has: str, wanted: str | None) -> bool:
    return wanted in (None, "any", has) or has == "any"


def _text(pattern: Pattern) -> str:
    parts = [pattern["name"], pattern["description"], *pattern["agent_summary"].values(), *pattern["steps"]]
    parts += [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", []), pattern["category"]]
    return "\n".join([*parts, *pattern.get("blind_spots", [])])


def _triggers(pattern: Pattern) -> list[frozenset[str]]:
    phrases = [*pattern["triggers"]["keywords"], *pattern["triggers"].get("actions", [])]
    found = {frozenset(stems(phrase)) for phrase in phrases}
    return sorted((trigger for trigger in found if trigger), key=sorted)
