"""Text → what search compares: stems of words in their order, and in code marks, such as ``.delay(`` or ``@task``."""

from __future__ import annotations

import re
from functools import lru_cache

READ = 100_000  # characters of a question; whoever has more to say has said it by then
_SAMPLE = 2_000  # characters that tell whether a text is code

_WORD = re.compile(r"[a-z0-9]+")
_SHORT = re.compile(r"['\u2019](?:s|t|re|ve|ll|d|m)\b")  # colleague's, isn't
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SYMBOL = re.compile(r"[(){}\[\]=;<>@_]")
_MARK = re.compile(r"(@(?:\w{1,60}\.){0,4}|\.)?([a-z_]\w*)(\(|\s?=(?!=))?")
_POINTERS = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "my",
        "our",
        "your",
        "their",
        "his",
        "her",
        "its",
        "some",
        "it",
        "them",
        "him",
    ]
)
_KEPT = frozenset(("deleted", "archived", "removed"))  # what has happened is not what is to be done
_ENDINGS = (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4))


def words(text: str) -> list[str]:
    """The stems of all words of ``text`` but articles and the like, in their order."""
    return [stem(word) for word in _WORD.findall(_SHORT.sub("", text.lower())) if word not in _POINTERS]


def is_code(text: str) -> bool:
    """Whether ``text`` looks like a program: one character in twenty-five is a symbol that sentences do without."""
    sample = text[:_SAMPLE]
    return len(_SYMBOL.findall(sample)) > max(2, len(sample) // 25)


def parts(code: str) -> list[str]:
    """The words that the names in ``code`` are made of."""
    return words(_HUMP.sub(" ", code))


def marks(code: str) -> set[str]:
    """How ``code`` uses names: ``name(`` called, ``.name`` of an object, ``@name`` a decorator, ``name=`` given."""
    found: set[str] = set()
    for before, name, after in set(_MARK.findall(code.lower())):
        if "_" in name:
            found.add(name)
        if after:
            found.add(f"{name}{after.strip()}")
        if before:
            found.add(f"{before[0]}{name}")
            found.add(f"{before[0]}{name}{after.strip()}")
    return found


def is_mark(term: str) -> bool:
    """Whether ``term`` is to be found among marks and not among words."""
    return (" " not in term and any(sign in term for sign in "_(=@")) or term.startswith(".")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """``word`` without its common endings."""
    for ending, least in () if word in _KEPT else _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            return _shortened(word[: -len(ending)], ending)
    return word


def _shortened(left: str, ending: str) -> str:
    if ending in ("ies", "ied"):
        return left + "y"
    if ending in ("ing", "ings", "ed") and left[-1] == left[-2] and left[-1] not in "lsz":
        return left[:-1]
    return left
