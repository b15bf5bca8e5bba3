"""Every exchange of every transcript, under each of its revisions: in this process, and over a real one's pipes."""

import functools
import itertools
import os

import pytest

from tests.support.emitted import Noted
from tests.support.process import SERVE
from tests.support.transcripts import TranscriptExtension, path_of, snapshot_name
from tmkb.conformance import replay, transcript
from tmkb.schema import paths

TRANSCRIPTS = {each.name: each for each in map(transcript.read, transcript.find(paths.CONFORMANCE))}
CONVERSATIONS = [(name, revision) for name, each in TRANSCRIPTS.items() for revision in each.revisions]
EXCHANGES = [
    (name, revision, number)
    for name, revision in CONVERSATIONS
    for number in range(1, len(TRANSCRIPTS[name].value["exchanges"]) + 1)
]


@functools.cache
def replayed(runtimes, name, revision):
    each = TRANSCRIPTS[name]
    target = Noted(replay.InProcess(runtimes(each.value["server"], each.config)))
    results = replay.replay(TRANSCRIPTS[name], revision, target)
    return {result.number: result.actual for result in results}


@pytest.mark.parametrize(("name", "revision", "number"), EXCHANGES, ids=str)
def test_exchange(runtimes, snapshot, name, revision, number):
    actual = replayed(runtimes, name, revision)[number]

    assert actual == snapshot(name=snapshot_name(name, number, revision), extension_class=TranscriptExtension)


@pytest.mark.parametrize(("name", "revision"), CONVERSATIONS, ids=str)
def test_the_same_over_stdio(monkeypatch, name, revision):
    for variable in [each for each in os.environ if each.startswith("COVERAGE")]:
        monkeypatch.delenv(variable)  # these processes are many, and run nothing that others do not
    target = Noted(replay.Command([*SERVE, *TRANSCRIPTS[name].arguments]))
    results = list(replay.replay(TRANSCRIPTS[name], revision, target))

    assert [(result.number, result.differences) for result in results if result.differences] == []


def test_titles_are_unique():
    titles = [each.value["title"] for each in TRANSCRIPTS.values()]

    assert sorted(titles) == sorted(set(titles))


def test_every_requirement_has_a_transcript_and_every_transcript_a_requirement():
    assert {each.value["requirement"] for each in TRANSCRIPTS.values()} == set(transcript.requirements())


def test_every_revision_on_offer_is_talked_to(spec):
    talked = set(itertools.chain.from_iterable(each.revisions for each in TRANSCRIPTS.values()))

    assert talked == set(spec["revisions"])


def test_names_lead_to_files():
    assert all(path_of(name) == each.path for name, each in TRANSCRIPTS.items())
