"""A trained linear model, and its file.

The file has four parts: a line of JSON with the facts; for each bucket, where its features begin; the features, one a
line, in buckets by their checksum, so that a question decodes only a few; and a row of bytes for each feature. A row
has a factor, the rarity (inverse document frequency), and the weight of each output in four bits. An output is a
pattern, or the gate, whose score says whether the question is about authorization at all.

To add up the weights of many features without numpy, a row becomes one integer in which each output has a lane of 32
bits. Adding rows adds all lanes at once. Weights are stored with an offset of 8, and so is a lane that is always zero;
subtracting that lane removes the offset.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from bisect import bisect_right
from functools import lru_cache
from zlib import crc32

from tmkb.knowledge.retrieval import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

LANE = 4  # bytes; the largest weight, 15 * 255, fits a million times, and a question has fewer features
OFFSET = 8  # of a stored weight; weights are from -7 to 7
MAX_FACTOR = 255
BUCKETS = 4096  # of features
FEATURES, PIECES = 20_000, 20_000  # of questions, whose numbers are kept
RARITY = 24  # steps of the stored rarity in one unit
_LOW, _HIGH = bytes(byte & 15 for byte in range(256)), bytes(byte >> 4 for byte in range(256))


class Model:
    """The weights of features for patterns.

    Attributes:
        facts: the first line of the file: `patterns`, `biases`, `unit` (the value of one step of a weight),
            `calibration`, `inputs` (a digest of the training data).
    """

    def __init__(self, packed: bytes) -> None:
        line, _, rest = packed.partition(b"\n")
        self.facts: Any = json.loads(line)
        self.outputs = len(self.facts["biases"])
        self._starts = _numbers(rest[: 8 * (BUCKETS + 1)])  # of each bucket: its first byte, then its first number
        self._names = rest[len(self._starts) * 4 :][: self._starts[-2]]
        self._buckets: list[dict[str, int] | None] = [None] * BUCKETS
        self._rows = _Rows(rest[len(self._starts) * 4 + len(self._names) :], self.outputs)
        self.number = lru_cache(maxsize=FEATURES)(self._number)
        self._grams = lru_cache(maxsize=PIECES)(lambda piece: _known(self._number, words.grams(piece)))
        if len(self._rows.packed) != self._starts[-1] * self._rows.size:
            raise ValueError("the model has another size than it says")

    def scores(self, features: words.Features) -> list[float]:
        """Return the score of each output for a text with these features."""
        one, other = map(self.sums, self.known(features))
        return [bias + first + second for bias, first, second in zip(self.facts["biases"], one, other, strict=True)]

    def known(self, features: words.Features) -> tuple[Collection[int], Collection[int]]:
        """Return the numbers of the known features in both blocks: words with symbols, and n-grams."""
        found, pieces = features
        return _known(self.number, found), set().union(*map(self._grams, pieces))

    def _number(self, feature: str) -> int | None:
        """Return the number of ``feature``, if it is known."""
        bucket = crc32(feature.encode("utf-8", "replace")) % BUCKETS
        numbers = self._buckets[bucket]
        if numbers is None:
            numbers = self._buckets[bucket] = {name: number for number, name in self._bucket(bucket)}
        return numbers.get(feature)

    def name(self, number: int) -> str:
        """Return the feature with ``number``."""
        return dict(self._bucket(bisect_right(self._starts[1::2], number) - 1))[number]

    def _bucket(self, bucket: int) -> Iterable[tuple[int, str]]:
        start, first, end, _ = self._starts[2 * bucket : 2 * bucket + 4]
        return enumerate(self._names[start:end].decode().split("\n")[:-1], first)

    def sums(self, numbers: Collection[int]) -> list[float]:
        """Return the weight of the features ``numbers`` together for each output, as a unit vector."""
        if not numbers:
            return [0.0] * self.outputs
        total = sum(map(self._rows.__getitem__, numbers))
        lanes = _numbers(total.to_bytes((self.outputs + 2) * LANE, "little"))
        zero, factor = lanes[-2], self.facts["unit"] * RARITY / math.sqrt(lanes[-1])
        return [(lane - zero) * factor for lane in lanes[:-2]]

    def length(self, numbers: Collection[int]) -> float:
        """Return the length of the vector of the features ``numbers``."""
        return math.sqrt(sum(self._rows.rarity(number) ** 2 for number in numbers)) / RARITY

    def rarity(self, feature: str) -> float | None:
        """Return the inverse document frequency of ``feature``, if it is known."""
        number = self.number(feature)
        return None if number is None else self._rows.rarity(number) / RARITY


class _Rows(dict[int, int]):
    """Rows as integers, decoded at first use."""

    def __init__(self, packed: bytes, outputs: int) -> None:
        self.packed, self.outputs = packed, outputs
        self.size = 2 + (outputs + 1) // 2  # bytes of a row

    def rarity(self, number: int) -> int:
        return self.packed[number * self.size + 1]

    def __missing__(self, number: int) -> int:
        factor, rarity, *_ = row = self.packed[number * self.size : (number + 1) * self.size]
        lanes = bytearray((self.outputs + self.outputs % 2) * LANE)
        lanes[:: 2 * LANE], lanes[LANE :: 2 * LANE] = row[2:].translate(_LOW), row[2:].translate(_HIGH)
        del lanes[self.outputs * LANE :]
        lanes += OFFSET.to_bytes(LANE, "little")
        value = int.from_bytes(lanes, "little") * factor + (rarity * rarity << 8 * len(lanes))
        self[number] = value
        return value


def _known(find: Callable[[str], int | None], features: Iterable[str]) -> tuple[int, ...]:
    return tuple([number for feature in features if (number := find(feature)) is not None])


def pack(facts: dict[str, Any], names: list[str], rows: Iterable[Sequence[int]]) -> bytes:
    """Return the file of a model. ``rows``: factor, rarity, and weights of each feature of ``names``."""
    buckets: list[list[tuple[bytes, bytes]]] = [[] for _ in range(BUCKETS)]
    for name, row in zip(names, rows, strict=True):
        encoded = name.encode()
        buckets[crc32(encoded) % BUCKETS].append((encoded + b"\n", _row(row)))
    features = [feature for bucket in buckets for feature in sorted(bucket)]
    sizes = [(sum(len(name) for name, _ in bucket), len(bucket)) for bucket in buckets]
    starts = [0, 0]
    for size, count in sizes:
        starts += [starts[-2] + size, starts[-1] + count]
    line = json.dumps(facts, separators=(",", ":")).encode()
    packed = b"".join(start.to_bytes(4, "little") for start in starts)
    return b"".join([line, b"\n", packed, *(name for name, _ in features), *(row for _, row in features)])


def _numbers(packed: bytes) -> array[int]:
    """Return unsigned numbers of 32 bits, little-endian."""
    numbers = array("I", packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _row(cells: Sequence[int]) -> bytes:
    factor, rarity, *weights = cells
    stored = [weight + OFFSET for weight in weights] + [OFFSET] * (len(weights) % 2)
    return bytes([factor, rarity, *(low | high << 4 for low, high in zip(stored[::2], stored[1::2], strict=True))])
