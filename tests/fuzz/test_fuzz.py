"""The inputs that fuzzing has kept, and valid ones with random changes, on every target. `run.py` goes on from there."""

import functools
import glob
import os
import random
import re

import pytest

from tests.fuzz import targets
from tests.support.tiers import sample

CHANGES = 40  # inputs for each target
CASES = [
    pytest.param(name, seed.values[0], marks=[*seed.marks, *([pytest.mark.needs(*each.needs)] if each.needs else [])])
    for name, each in targets.TARGETS.items()
    for seed in sample(range(4), 4)
]


@functools.cache
def seeds(name):
    return [*targets.TARGETS[name].seeds()]


def changed(chance, data, other, words):
    """``data`` with some bytes changed, cut out, repeated, or replaced by a word or by a part of ``other``."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 2, 8])):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([0, 1, 4, 40]))
        start = chance.randrange(len(other) + 1)
        new = [b"", data[at:end] * 2, other[start : start + 30], chance.randbytes(1), chance.choice(words)]
        data[at:end] = chance.choice(new)
    return bytes(data)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_changed_inputs_end_in_errors_that_clients_and_authors_get(name, seed):
    chance = random.Random(f"{name} {seed}")
    words = [word.encode() for word in targets.TARGETS[name].words()] or [b"\0"]
    for _ in range(CHANGES):
        data = changed(chance, chance.choice(seeds(name)), chance.choice(seeds(name)), words)
        try:
            targets.prepared(name)(data)
        except BaseException as error:
            error.add_note(f"input: {data!r}")
            raise


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.needs(*t.needs)) for n, t in targets.TARGETS.items()]
)
def test_no_input_of_the_corpus_fails(name):
    for path in targets.inputs(name):
        with open(path, "rb") as file:
            data = file.read()
        try:
            targets.prepared(name)(data)
        except BaseException as error:
            error.add_note(f"input: {path}")
            raise


def test_the_corpus_is_small_and_belongs_to_targets():
    files = glob.glob(os.path.join(targets.CORPUS, "*", "*"))

    assert {os.path.basename(os.path.dirname(file)) for file in files} <= set(targets.TARGETS)
    assert sum(map(os.path.getsize, files)) < 300_000
    assert all(re.fullmatch("(failed-)?[0-9a-f]{40}", os.path.basename(file)) for file in files)


@pytest.mark.parametrize("name", ["connection", "http", "question"])
def test_an_unexpected_exception_is_noticed(name, monkeypatch):
    """The server catches it, and the client gets an internal error."""
    import tmkb.protocol.inbound

    def fail(*_):
        raise ZeroDivisionError

    pytest.importorskip("uvicorn")
    monkeypatch.setattr(tmkb.protocol.inbound, "receive", fail)
    monkeypatch.setattr(tmkb.protocol.inbound, "receive_value", fail)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        targets.prepared(name)(seeds(name)[-1])
