"""Correct unknown words to the known word that is most similar.

Most misspellings keep the first letter and the set of consonants: a vowel is wrong, a letter is doubled or missing, or
two are swapped. These form the key of each known word, so one lookup finds the few candidates.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MIN_LENGTH = 5  # letters; shorter words are similar to too many others
MAX_DISTANCE = 2  # letters that may differ


def build(known: Iterable[str]) -> dict[str, list[str]]:
    """Return the ``known`` words by key."""
    by_key: dict[str, list[str]] = {}
    for word in known:
        if len(word) >= MIN_LENGTH and word.isalpha():
            by_key.setdefault(_key(word), []).append(word)
    return by_key


def nearest(word: str, by_key: Any) -> str:
    """Return the most similar known word, or ``word`` itself if none is similar enough."""
    near = [(_distance(word, other), other) for other in by_key.get(_key(word), ()) if abs(len(other) - len(word)) < 3]
    distance, best = min(near, default=(MAX_DISTANCE + 1, word))
    return best if distance <= min(MAX_DISTANCE, len(word) // 4) else word


def _key(word: str) -> str:
    return word[0] + "".join(sorted({letter for letter in word[1:] if letter not in "aeiouy"}))


def _distance(one: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance: letters to insert, delete, replace, or swap with the next."""
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
