"""A trained linear model, and its file.

The file has four parts: a line of JSON with the facts; for each bucket, where its features begin; the features in
buckets by the checksum of their head, so that a question reads only a few; and a row of bytes for each feature. In a
bucket, each head begins a line, and a tab precedes each of its tails. A row has a factor, the rarity (inverse document
frequency), and the weight of each output in four bits. An output is a pattern, or the gate, whose score says whether
the question is about authorization at all.

A pair of words is found by its head and its tail, so that no string is made for it. What the model knows about a chunk
of a question is kept, because words are repeated.

To add up the weights of many features without numpy, a row becomes one integer in which each output has a lane of 24
bits. Adding rows adds all lanes at once. Weights are stored with an offset of 8, and so is a lane that is always zero;
subtracting that lane removes the offset.
"""

from __future__ import annotations

import math
import sys
from zlib import crc32

from tmkb import stdlib
from tmkb.knowledge.retrieval import words
from tmkb.knowledge.retrieval.memo import Memo
from tmkb.schema.values import record
from tmkb.stdlib import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from mmap import mmap
    from typing import Any

    Tails = dict[str, int]  # tail → number of a feature

LANE = 3  # bytes
OFFSET = 8  # of a stored weight; weights are from -7 to 7
MAX_FACTOR = 255
BUCKETS = 4096  # of heads
RARITY = 24  # steps of the stored rarity in one unit
MOST = (1 << 8 * LANE) // (15 * MAX_FACTOR)  # rows whose sum fits into lanes
_LOW, _HIGH = bytes(byte & 15 for byte in range(256)), bytes(byte >> 4 for byte in range(256))

_NONE: dict[str, int] = {}


@record
class _Chunk:
    """What the model knows about a chunk of a question.

    The stems and for each the pairs that begin with it, without and with a word between; the same for the tokens; the
    numbers of the stems; the pieces.
    """

    stems: tuple[str, ...]
    following: tuple[Tails, ...]
    second: tuple[Tails, ...]
    tokens: tuple[str, ...]
    adjacent: tuple[Tails, ...]
    alone: tuple[int, ...]
    pieces: tuple[str, ...]


class Model:
    """The weights of features for patterns.

    Attributes:
        facts: the first line of the file: `patterns`, `biases`, `unit` (the value of one step of a weight),
            `calibration`, `inputs` (digests of the training data), `checksum` (of the other parts).
    """

    def __init__(self, packed: bytes | mmap) -> None:
        start = packed.find(b"\n") + 1
        self.facts: Any = stdlib.loads(packed[:start])
        self.outputs, self._checksum = len(self.facts["biases"]), self.facts["checksum"]
        size = 8 * (BUCKETS + 1)
        self._starts = _numbers(packed[start : start + size])  # of each bucket: its first byte, then its first number
        self._packed, self._start, self._names = packed, start, start + size
        self._rows = _Rows(packed, self._names + self._starts[-2], self._starts[-1], self.outputs)
        self.number = Memo(self._number).__getitem__
        self._chunks, self._pieces = Memo(self._chunk), Memo(self._piece)
        self._heads, self._grams = Memo(self._tails), Memo(lambda three: self._tails(words.GRAM + three))

    def is_intact(self) -> bool:
        """Return whether the file is as it was written. Reading does not check it, because that takes a millisecond."""
        return crc32(self._packed[self._start :]) == int(self._checksum)

    def scores(self, text: str) -> list[float]:
        """Return the score of each output for ``text``."""
        return self.total(self.known(text))

    def total(self, known: tuple[set[int], set[int]]) -> list[float]:
        """Return the score of each output for a text with these features, as `known` returns them."""
        one, other = map(self.sums, known)
        return [bias + first + second for bias, first, second in zip(self.facts["biases"], one, other, strict=True)]

    def known(self, text: str) -> tuple[set[int], set[int]]:
        """Return the numbers of the known features of ``text`` in both blocks: words with symbols, and n-grams."""
        chunks = words.chunks(text)
        parts = self._chunks
        stems: list[str] = []
        tokens: list[str] = []
        following: list[Tails] = []
        second: list[Tails] = []
        adjacent: list[Tails] = []
        for chunk in chunks:
            part = parts[chunk]
            stems += part.stems
            following += part.following
            second += part.second
            tokens += part.tokens
            adjacent += part.adjacent
        different = [*map(parts.__getitem__, {*chunks})]
        found: set[Any] = set().union(*[part.alone for part in different])
        found.update(map(dict.get, following, stems[1:]))
        found.update(map(dict.get, second, stems[2:]))
        found.update(map(dict.get, adjacent, tokens[1:]))
        found.discard(None)
        pieces = {piece for part in different for piece in part.pieces}
        return found, set().union(*map(self._pieces.__getitem__, pieces))

    def _chunk(self, chunk: str) -> _Chunk:
        stems, tokens, pieces = words.parts(chunk)
        heads = self._heads
        return _Chunk(
            tuple(stems),
            tuple([heads[stem + words.NEXT] for stem in stems]),
            tuple([heads[stem + words.SECOND] for stem in stems]),
            tuple(tokens),
            tuple([heads[token + words.ADJACENT] for token in tokens]),
            tuple([tails[""] for stem in stems if (tails := heads[stem])]),
            tuple(pieces),
        )

    def _piece(self, piece: str) -> tuple[int, ...]:
        """Return the numbers of the known n-grams of ``piece``."""
        found: list[int] = []
        for three, one, two in words.grams(piece):
            if known := self._grams[three]:
                found += [known[tail] for tail in ("", one, two) if tail in known]
        return tuple(found)

    def _tails(self, head: str) -> dict[str, int]:
        """Return the known features that begin with ``head``, by tail."""
        key = head.encode("utf-8", "surrogatepass")
        bucket, number = self._bucket(crc32(key) % BUCKETS)
        at = bucket.find(b"\n%b\t" % key)
        if at < 0:
            return _NONE
        number += bucket.count(b"\t", 0, at)
        _, *tails = bucket[at + 1 :].partition(b"\n")[0].decode().split("\t")
        return dict(zip(tails, range(number, number + len(tails)), strict=True))

    def _bucket(self, bucket: int) -> tuple[bytes, int]:
        """Return the heads and tails of a bucket, and the number of its first feature."""
        start, number, end = self._starts[2 * bucket : 2 * bucket + 3]
        return self._packed[self._names + start : self._names + end], number

    def _number(self, feature: str) -> int | None:
        """Return the number of ``feature``, if it is known."""
        head, tail = words.split(feature)
        tails: Tails = self._heads[head]
        return tails.get(tail)

    def name(self, number: int) -> str:
        """Return the feature with ``number``."""
        from bisect import bisect_right

        bucket, first = self._bucket(bisect_right(self._starts[1::2], number) - 1)
        lines = [line.split("\t") for line in bucket.decode().split("\n")[1:]]
        return [head + tail for head, *tails in lines for tail in tails][number - first]

    def sums(self, numbers: Collection[int]) -> list[float]:
        """Return the weight of the features ``numbers`` together for each output, as a unit vector."""
        if not numbers:
            return [0.0] * self.outputs
        lanes, square = self._rows.total([*numbers])
        zero, factor = lanes[-1], self.facts["unit"] * RARITY / math.sqrt(square)
        return [(lane - zero) * factor for lane in lanes[:-1]]

    def length(self, numbers: Collection[int]) -> float:
        """Return the length of the vector of the features ``numbers``."""
        return math.sqrt(sum(self._rows.rarity(number) ** 2 for number in numbers)) / RARITY

    def rarity(self, feature: str) -> float | None:
        """Return the inverse document frequency of ``feature``, if it is known."""
        number = self.number(feature)
        return None if number is None else self._rows.rarity(number) / RARITY


class _Rows:
    """Rows as integers, decoded at first use."""

    def __init__(self, packed: bytes | mmap, start: int, count: int, outputs: int) -> None:
        self.packed, self.start, self.lanes = packed, start, outputs + 1
        self.size = row_size(outputs)
        if len(packed) != start + count * self.size:
            raise ValueError("the model has another size than it says")
        # The last one is 0: `itemgetter` returns a tuple for two indexes, and no tuple for one.
        self._decoded: list[Any] = [*[None] * count, 0]

    def rarity(self, number: int) -> int:
        return self.packed[self.start + number * self.size + 1]

    def total(self, numbers: list[int]) -> tuple[Sequence[int], int]:
        """Return the sum of the lanes of the rows ``numbers``, and that of their squared rarities."""
        if len(numbers) > MOST:
            lanes, square = self.total(numbers[:MOST])
            others, more = self.total(numbers[MOST:])
            return [one + other for one, other in zip(lanes, others, strict=True)], square + more
        chosen = itemgetter(-1, *numbers)
        try:
            total = sum(chosen(self._decoded))
        except TypeError:
            for number in numbers:
                if self._decoded[number] is None:
                    self._decoded[number] = self._decode(number)
            total = sum(chosen(self._decoded))
        size = self.lanes * LANE
        packed = total.to_bytes(size + 8, "little")
        wide = bytearray(self.lanes * 4)
        wide[::4], wide[1::4], wide[2::4] = packed[:size:3], packed[1:size:3], packed[2:size:3]
        return _numbers(bytes(wide)), total >> 8 * size

    def _decode(self, number: int) -> int:
        factor, rarity, *_ = row = self.packed[(at := self.start + number * self.size) : at + self.size]
        lanes = bytearray(2 * len(row[2:]) * LANE)
        lanes[:: 2 * LANE], lanes[LANE :: 2 * LANE] = row[2:].translate(_LOW), row[2:].translate(_HIGH)
        del lanes[(self.lanes - 1) * LANE :]
        lanes += OFFSET.to_bytes(LANE, "little")
        return int.from_bytes(lanes, "little") * factor + (rarity * rarity << 8 * len(lanes))


def pack(facts: dict[str, Any], names: list[str], rows: Iterable[Sequence[int]]) -> bytes:
    """Return the file of a model. ``rows``: factor, rarity, and weights of each feature of ``names``."""
    buckets: list[dict[str, list[tuple[str, bytes]]]] = [{} for _ in range(BUCKETS)]
    for name, row in sorted(zip(names, map(_row, rows), strict=True)):
        head, tail = words.split(name)
        buckets[crc32(head.encode()) % BUCKETS].setdefault(head, []).append((tail, row))
    starts, texts, packed = [0, 0], [], []
    for bucket in buckets:
        lines = ["\t".join(["\n" + head, *(tail for tail, _ in features)]) for head, features in bucket.items()]
        texts.append("".join(lines).encode())
        packed += [row for features in bucket.values() for _, row in features]
        starts += [starts[-2] + len(texts[-1]), len(packed)]
    rest = b"".join([*(start.to_bytes(4, "little") for start in starts), *texts, *packed])
    line = stdlib.encoder(ensure_ascii=True)({**facts, "checksum": crc32(rest)}).encode()
    return line + b"\n" + rest


def row_size(outputs: int) -> int:
    """Return the number of bytes of a row."""
    return 2 + (outputs + 1) // 2


def _numbers(packed: bytes) -> Sequence[int]:
    """Return unsigned numbers of 32 bits, little-endian."""
    if sys.byteorder == "little":
        return memoryview(packed).cast("I")
    from array import array

    numbers = array("I", packed)
    numbers.byteswap()
    return numbers


def _row(cells: Sequence[int]) -> bytes:
    factor, rarity, *weights = cells
    stored = [weight + OFFSET for weight in weights] + [OFFSET] * (len(weights) % 2)
    return bytes([factor, rarity, *(low | high << 4 for low, high in zip(stored[::2], stored[1::2], strict=True))])
