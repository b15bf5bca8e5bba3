"""Count tokens of cl100k_base, the measure of an answer's size, exactly and without a tokenizer package.

``cl100k_base.bin`` contains the vocabulary of that encoding, compressed with zlib. Each token but the 256 single bytes
consists of two tokens of lower ranks. The file has the numbers of these two, in the order of the ranks: all first
numbers, then all second numbers, both as all low bytes, then all middle bytes, then all high bytes. The vocabulary is
OpenAI's; LICENSE-tiktoken has its license.
"""

from __future__ import annotations

import os
import re
import zlib
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush

VOCABULARY = os.path.join(os.path.dirname(__file__), "cl100k_base.bin")
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # Unicode's; that of `re` has more


def count(text: str) -> int:
    """Return the number of tokens of ``text``. Special tokens such as ``<|endoftext|>`` count as plain text."""
    numerals = "".join(sorted(filter(_is_other_numeral, set(text))))
    return sum(_size(piece.encode()) for piece in _splitter(numerals).findall(text))


@cache
def ranks() -> dict[bytes, int]:
    """Return the rank of each token of more than one byte: of two merges, the one with the lower rank comes first."""
    with open(VOCABULARY, "rb") as file:
        packed = zlib.decompress(file.read())
    size = len(packed) // 6
    low, middle, high, *second = (packed[start : start + size] for start in range(0, len(packed), size))
    tokens = [bytes([byte]) for byte in range(256)]
    for a, b, c, d, e, f in zip(low, middle, high, *second, strict=True):
        tokens.append(tokens[a | b << 8 | c << 16] + tokens[d | e << 8 | f << 16])
    return {token: rank for rank, token in enumerate(tokens[256:])}


@lru_cache(maxsize=16)
def _splitter(numerals: str) -> re.Pattern[str]:
    """Return the expression that cuts a text into pieces, within which tokens are merged.

    It is the expression of the encoding in the syntax of `re`, which lacks ``\\p{L}`` and ``\\p{N}``. Python's Unicode
    version decides which characters are letters and numerals.

    Args:
        numerals: the numerals of the text that ``\\d`` does not match.
    """
    letter, digit = rf"[^\W\d_{numerals}]", rf"[\d{numerals}]"
    return re.compile(
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?{letter}+|{digit}{{1,3}}| ?(?:[^{_SPACE}\w]|_)+[\r\n]*"
        rf"|[{_SPACE}]*[\r\n]+|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
    )


def _is_other_numeral(character: str) -> bool:
    return character.isnumeric() and not character.isdecimal() and not character.isalpha()


@lru_cache(maxsize=1 << 14)
def _size(piece: bytes) -> int:
    """Return the number of tokens of a piece: neighbors that make a token are merged, the lowest rank first."""
    known, length = ranks(), len(piece)
    if piece in known:
        return 1
    ends = [*range(1, length + 1)]  # of the part that starts here; 0 if none does
    before = [*range(-1, length - 1)]  # where the part in front of this one starts
    merges = [(known[pair], at, at + 2) for at in range(length - 1) if (pair := piece[at : at + 2]) in known]
    heapify(merges)
    size = length
    while merges:
        _, start, end = heappop(merges)
        middle = ends[start]
        if not middle or middle == length or ends[middle] != end:  # one of the two has been merged since
            continue
        ends[start], ends[middle] = end, 0
        size -= 1
        if start and (pair := piece[before[start] : end]) in known:
            heappush(merges, (known[pair], before[start], end))
        if end < length:
            before[end] = start
            if (pair := piece[start : ends[end]]) in known:
                heappush(merges, (known[pair], start, ends[end]))
    return size
