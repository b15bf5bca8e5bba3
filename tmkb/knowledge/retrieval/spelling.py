"""Words that nobody knows → the known word that was meant, if there is just one that looks like it.

Most slips keep the first letter and the set of consonants: a vowel is wrong, a letter is doubled or not, two are
swapped. So both are the key under which known words are kept, and one look finds the few candidates.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SHORTEST = 5  # letters; shorter words look like too many others
FARTHEST = 2  # letters that may differ


def build(known: Iterable[str]) -> dict[str, list[str]]:
    """The ``known`` words by their keys."""
    found: dict[str, list[str]] = {}
    for word in known:
        if len(word) >= SHORTEST and word.isalpha():
            found.setdefault(_key(word), []).append(word)
    return found


def nearest(word: str, built: Any) -> str:
    """The known word that ``word`` most likely is, or ``word`` itself."""
    near = [(_distance(word, other), other) for other in built.get(_key(word), ()) if abs(len(other) - len(word)) < 3]
    best = min(near, default=(FARTHEST + 1, word))
    return best[1] if best[0] <= min(FARTHEST, len(word) // 4) else word


def _key(word: str) -> str:
    return word[0] + "".join(sorted({letter for letter in word[1:] if letter not in "aeiouy"}))


def _distance(one: str, other: str) -> int:
    """Letters to insert, leave out, replace, or swap with the next (Damerau and Levenshtein)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, mark in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != mark))
            if last and j > 1 and letter == other[j - 2] and one[i - 2] == mark:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
