"""Split text into stems of words, and code into marks such as ``.delay(`` or ``@task``."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_CHARACTERS = 100_000  # of a question; the rest is ignored
_SAMPLE = 2_000  # characters that `is_code` looks at

_WORD = re.compile(r"[a-z0-9]+")
_SHORT = re.compile(r"['\u2019](?:s|t|re|ve|ll|d|m)\b")  # colleague's, isn't
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SYMBOL = re.compile(r"[(){}\[\]=;<>@_]")
_MARK = re.compile(r"(@(?:\w{1,60}\.){0,4}|\.)?([a-z_]\w*)(\(|\s?=(?!=))?")
_DETERMINERS = "a an the this that these those my our your their his her its some it them him"
_IGNORED = frozenset(_DETERMINERS.split())
_UNSTEMMED = frozenset(("deleted", "archived", "removed"))  # states, in contrast to actions
_ENDINGS = (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4))


def words(text: str) -> list[str]:
    """Return the stems of the words of ``text`` in order, without articles, possessives and pronouns."""
    return [stem(word) for word in _WORD.findall(_SHORT.sub("", text.lower())) if word not in _IGNORED]


def is_code(text: str) -> bool:
    """Return whether ``text`` looks like a program: one character in 25 is a symbol that is rare in sentences."""
    sample = text[:_SAMPLE]
    return len(_SYMBOL.findall(sample)) > max(2, len(sample) // 25)


def parts(code: str) -> list[str]:
    """Return the stems of the words in the identifiers of ``code``."""
    return words(_HUMP.sub(" ", code))


def marks(code: str) -> set[str]:
    """Return how ``code`` uses names: ``name(`` a call, ``.name`` an attribute, ``@name`` a decorator, ``name=``."""
    found: set[str] = set()
    for before, name, after in set(_MARK.findall(code.lower())):
        if "_" in name:
            found.add(name)
        if after:
            found.add(f"{name}{after.strip()}")
        if before:
            found.update((f"{before[0]}{name}", f"{before[0]}{name}{after.strip()}"))
    return found


def is_mark(term: str) -> bool:
    """Return whether ``term`` is compared with marks instead of words."""
    return (" " not in term and any(sign in term for sign in "_(=@")) or term.startswith(".")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return ``word`` without its common endings."""
    for ending, least in () if word in _UNSTEMMED else _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            rest = word[: -len(ending)]
            if ending in ("ies", "ied"):
                return rest + "y"
            is_doubled = ending in ("ing", "ings", "ed") and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if is_doubled else rest
    return word
