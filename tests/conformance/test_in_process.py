"""Every transcript, under each of its revisions, in this process."""

import itertools

import pytest

from tests.conformance.conversations import CASES, TRANSCRIPTS
from tests.support.emitted import Noted
from tests.support.transcripts import TranscriptExtension, path_of, snapshot_name
from tmkb.conformance import replay, transcript


@pytest.mark.parametrize(("name", "revision"), CASES, ids=str)
def test_conversation(runtimes, snapshot, name, revision):
    each = TRANSCRIPTS[name]
    target = Noted(replay.InProcess(runtimes(each.value["server"], each.config)))

    for result in replay.replay(each, revision, target):
        expected = snapshot(name=snapshot_name(name, result.number, revision), extension_class=TranscriptExtension)
        assert result.actual == expected, f"exchange {result.number}"


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
