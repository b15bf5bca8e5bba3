"""Split text into features: words, pairs of words, pairs of symbols, and n-grams of characters.

Training and search share this module, so that they see the same features. A feature is a string:

- ``stem``: a word without its ending; identifiers in camelCase and snake_case are split into words
- ``one two``, ``one _ two``: two stems in a row, and with one between them
- ``one|two``: two identifiers or symbols in a row, as written, in lower case
- ``~gra``: three to five characters of a piece, which is an identifier with the punctuation around it

A feature has a head, which many features share, and a tail: ``one `` and ``two``, ``one|`` and ``two``, ``~gra`` and
``ms``. A stem has an empty tail.
"""

from __future__ import annotations

from itertools import pairwise

from tmkb.knowledge.retrieval.memo import Memo

TYPE_CHECKING = False
if TYPE_CHECKING:
    Parts = tuple[list[str], list[str], list[str]]

MAX_CHARACTERS = 20_000  # of a question; the rest is ignored
MAX_PIECE = 60  # characters of a piece
SIZE = 3  # characters of the head of an n-gram
GRAM, NEXT, SECOND, ADJACENT = "~", " ", " _ ", "|"

_DETERMINERS = "a an the this that these those my our your their his her its some it them him"
_IGNORED = frozenset(_DETERMINERS.split())
_UNSTEMMED = frozenset(("deleted", "archived", "removed"))  # states, in contrast to actions
_ENDINGS = (("ings", 4), ("ing", 3), ("ies", 3), ("ied", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4))


def features(text: str) -> set[str]:
    """Return the features of ``text`` that are not n-grams."""
    single: list[str] = []
    tokens: list[str] = []
    for chunk in chunks(text):
        more = _parts[chunk]
        single += more[0]
        tokens += more[1]
    found = {*single, *[one + ADJACENT + two for one, two in pairwise(tokens)]}
    found.update([one + NEXT + two for one, two in pairwise(single)])
    found.update([one + SECOND + two for one, two in zip(single, single[2:], strict=False)])
    return found


def ngrams(text: str) -> set[str]:
    """Return the n-grams of ``text``."""
    pieces = {piece for chunk in {*chunks(text)} for piece in parts(chunk)[2]}
    places = {place for piece in pieces for place in grams(piece)}
    return {GRAM + three + tail for three, one, two in places for tail in ("", one, two)}


def chunks(text: str) -> list[str]:
    """Return ``text``, as far as it counts, split at spaces."""
    return text[:MAX_CHARACTERS].split()


def parts(chunk: str) -> Parts:
    """Return the stems, the tokens and the pieces of ``chunk`` in order."""
    lower = chunk.lower()
    if _is_plain(chunk):
        return [stems[lower]] if lower not in _IGNORED else [], [lower], [lower]
    from tmkb.knowledge.retrieval import expressions

    return words(chunk), expressions.tokens(lower), expressions.pieces(lower)


def _is_plain(chunk: str) -> bool:
    """Return whether ``chunk`` is one word of ASCII letters. Most chunks are, and need no regular expression."""
    return chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk.istitle() or chunk.isupper())


def split(feature: str) -> tuple[str, str]:
    """Return the head and the tail of ``feature``."""
    if feature[0] == GRAM:
        border = len(GRAM) + SIZE
    elif NEXT in feature:
        border = feature.rindex(NEXT) + len(NEXT)
    else:
        border = feature.find(ADJACENT, 1) + len(ADJACENT) or len(feature)  # a token can be | itself
    return feature[:border], feature[border:]


def words(text: str) -> list[str]:
    """Return the stems of the words of ``text`` in order, without articles, possessives and pronouns."""
    return [stems[word] for word in unstemmed(text)]


def unstemmed(text: str) -> list[str]:
    """Return the words of ``text`` in lower case and in order, without articles, possessives and pronouns."""
    from tmkb.knowledge.retrieval import expressions

    return [word for word in expressions.words(text) if word not in _IGNORED]


def grams(piece: str) -> list[tuple[str, str, str]]:
    """Return the n-grams of ``piece``, whose ends count as spaces.

    Three characters at each place, the next character, and the next two characters; at the end there are fewer.
    """
    padded = f" {piece[:MAX_PIECE]} "
    return [(padded[at - SIZE : at], padded[at : at + 1], padded[at : at + 2]) for at in range(SIZE, len(padded) + 1)]


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


_parts, stems = Memo(parts), Memo(stem)  # what `parts` and `stem` return
