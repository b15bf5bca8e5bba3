"""Split text into features: words, pairs of words, pairs of symbols, and n-grams of characters.

Training and search share this module, so that they see the same features. A feature is a string:

- ``stem``: a word without its ending; identifiers in camelCase and snake_case are split into words
- ``one two``, ``one _ two``: two stems in a row, and with one between them
- ``one|two``: two identifiers or symbols in a row, as written, in lower case
- ``~gra``: three to five characters of a piece, which is an identifier with the punctuation around it
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Features = tuple[set[str], set[str]]  # of words and symbols; and the pieces, which `grams` splits further

MAX_CHARACTERS = 20_000  # of a question; the rest is ignored
MAX_PIECE = 60  # characters of a piece
SIZES = (3, 4, 5)  # characters of an n-gram

_WORD = re.compile(r"[a-z]+|[0-9]+")
_SHORT = re.compile(r"['\u2019](?:s|t|re|ve|ll|d|m)\b", re.ASCII)  # colleague's, isn't
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOKEN = re.compile(r"[a-z_0-9]+|[^\sa-z_0-9~]", re.ASCII)  # ~ marks n-grams
_PIECE = re.compile(r"[^\w\s]*\w+[(=:]?|[^\w\s]+", re.ASCII)
_DETERMINERS = "a an the this that these those my our your their his her its some it them him"
_IGNORED = frozenset(_DETERMINERS.split())
_UNSTEMMED = frozenset(("deleted", "archived", "removed"))  # states, in contrast to actions
_ENDINGS = (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4))


def features(text: str) -> Features:
    """Return the features of ``text``."""
    stems: list[str] = []
    tokens: list[str] = []
    pieces: set[str] = set()
    for chunk in text[:MAX_CHARACTERS].split():
        more = _cached(chunk) if len(chunk) <= MAX_PIECE else _split(chunk)
        stems += more[0]
        tokens += more[1]
        pieces.update(more[2])
    found = {*stems, *[f"{one}|{two}" for one, two in pairwise(tokens)]}
    found.update([f"{one} {two}" for one, two in pairwise(stems)])
    found.update([f"{one} _ {two}" for one, two in zip(stems, stems[2:], strict=False)])
    return found, pieces


def _split(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the stems, the tokens and the pieces of ``text`` in order."""
    lower = text.lower()
    return words(text), _TOKEN.findall(lower), _PIECE.findall(lower)


_cached = lru_cache(maxsize=20_000)(_split)


def words(text: str) -> list[str]:
    """Return the stems of the words of ``text`` in order, without articles, possessives and pronouns."""
    spaced = _SHORT.sub("", _HUMP.sub(" ", text).lower())
    return [stem(word) for word in _WORD.findall(spaced) if word not in _IGNORED]


def grams(piece: str) -> Iterator[str]:
    """Yield the n-grams of ``piece``, whose ends count as spaces."""
    padded = f" {piece[:MAX_PIECE]} "
    for size in SIZES:
        for at in range(len(padded) - size + 1):
            yield f"~{padded[at : at + size]}"


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
